"""Certificates by which an app signs in: made here, or brought. Everything here takes CPU time."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

KEY_BITS = 2048
DAYS = 730
_BEGUN_BEFORE = dt.timedelta(minutes=10)
"""A certificate is valid from a little before now, for clocks that are a little late."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate with its private key.

    Attributes:
        pem: private key and certificate, as azure-identity takes them.
        public_pem: the certificate alone; anybody may see it.
        sha1: thumbprint as Entra shows it, in hex.
        sha256: the other thumbprint.
        expires_at: milliseconds since the epoch.
    """

    pem: str = field(repr=False)
    public_pem: str
    sha1: str
    sha256: str
    subject: str
    expires_at: int


def make_certificate(name: str, *, now: int, days: int = DAYS) -> Certificate:
    """Make an RSA key and a certificate signed with it.

    Args:
        name: who it is for, as the certificate's common name.
        now: milliseconds since the epoch.
        days: how long it is good for.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.x509.oid import NameOID

    key = rsa.generate_private_key(public_exponent=65537, key_size=KEY_BITS)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"drivefeed {name}"[:64])])
    begins = dt.datetime.fromtimestamp(now / 1000, tz=dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins - _BEGUN_BEFORE)
        .not_valid_after(begins + dt.timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _described(key, made)


def read_certificate(content: bytes, password: bytes | None = None) -> Certificate:
    """Read a PFX file, or a PEM file with a private key and its certificate.

    Raises:
        NeedsAttention: it is neither, the password is missing or wrong, the key is not RSA or too
            short, or key and certificate do not belong together.
    """
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    key, certificate = (_from_pem if b"-----BEGIN" in content else _from_pfx)(content, password)
    if not isinstance(key, RSAPrivateKey) or key.key_size < KEY_BITS:
        raise _refused(
            f"Entra takes certificates with RSA keys of {KEY_BITS} bits or more, and this is "
            "another one. Let drivefeed make one with --make-certificate."
        )
    if certificate.public_key() != key.public_key():
        raise _refused("The certificate and the private key in the file do not belong together.")
    return _described(key, certificate)


def _from_pem(content: bytes, password: bytes | None) -> tuple[object, x509.Certificate]:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    if b"PRIVATE KEY-----" not in content:
        raise _refused(
            "The file holds no private key. Bring a file with the private key and the certificate."
        )
    try:
        key = load_pem_private_key(content, password)
    except TypeError:
        if password is None:
            raise _needs_password() from None
        key = load_pem_private_key(content, None)
    except ValueError:
        raise _unreadable(password) from None
    try:
        return key, x509.load_pem_x509_certificate(content)
    except ValueError:
        raise _refused(
            "The file holds no certificate beside the private key. Bring both in one file."
        ) from None


def _from_pfx(content: bytes, password: bytes | None) -> tuple[object, x509.Certificate]:
    from cryptography.hazmat.primitives.serialization.pkcs12 import load_key_and_certificates

    try:
        key, certificate, _ = load_key_and_certificates(content, password)
    except ValueError:
        raise _unreadable(password) from None
    if key is None or certificate is None:
        raise _refused("The file holds no private key, or no certificate; both are needed.")
    return key, certificate


def _described(key: RSAPrivateKey, certificate: x509.Certificate) -> Certificate:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    public = certificate.public_bytes(Encoding.PEM).decode()
    return Certificate(
        pem=private + public,
        public_pem=public,
        sha1=certificate.fingerprint(hashes.SHA1()).hex().upper(),  # noqa: S303 - Entra's name
        sha256=certificate.fingerprint(hashes.SHA256()).hex().upper(),
        subject=certificate.subject.rfc4514_string(),
        expires_at=int(certificate.not_valid_after_utc.timestamp() * 1000),
    )


def _needs_password() -> NeedsAttention:
    return _refused("The file is protected by a password. Pass it with --password-stdin.")


def _unreadable(password: bytes | None) -> NeedsAttention:
    if password is None:
        return _refused(
            "The file is not a PFX or PEM file, or it is protected by a password. If it is, pass "
            "it with --password-stdin."
        )
    return _refused("The file cannot be read with this password, or is damaged.")


def _refused(words: str) -> NeedsAttention:
    return NeedsAttention(words, reason=Reason.MISCONFIGURED)

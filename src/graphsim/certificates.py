"""The authority of graphsim's https side: made once per state folder, trusted by nobody else."""

from __future__ import annotations

import datetime as dt
import ipaddress
from typing import TYPE_CHECKING

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from pathlib import Path

_LIFETIME = dt.timedelta(days=365)
_RENEW_BEFORE = dt.timedelta(days=30)


class TlsFiles(msgspec.Struct, frozen=True):
    """Paths of the authority's certificate, and of the server's certificate and key."""

    ca: Path
    certificate: Path
    key: Path


def ensure_certificates(folder: Path) -> TlsFiles:
    """Return certificates for ``localhost``, 127.0.0.1, 127.0.0.2 and ::1, making them if needed.

    The authority's own key is never written: a new server certificate means a new authority.
    """
    files = TlsFiles(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    if _good(files):
        return files
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _authority(ca_key)
    certificate = _server(authority, ca_key, key)
    files.key.touch(mode=0o600)
    files.key.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    files.ca.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
    return files


def _good(files: TlsFiles) -> bool:
    if not (files.ca.exists() and files.certificate.exists() and files.key.exists()):
        return False
    try:
        certificate = x509.load_pem_x509_certificate(files.certificate.read_bytes())
    except ValueError:
        return False
    return certificate.not_valid_after_utc > _today() + _RENEW_BEFORE


def _today() -> dt.datetime:
    return dt.datetime.now(dt.UTC)  # noqa: TID251 - a certificate is judged by real clocks


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> (
    x509.CertificateBuilder
):  # fmt: skip
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(_today() - dt.timedelta(days=1))
        .not_valid_after(_today() + _LIFETIME)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _authority(key: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    name = _named("graphsim authority")
    return (
        _builder(name, name, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(is_authority=True), critical=True)
        .sign(key, hashes.SHA256())
    )


def _server(
    authority: x509.Certificate, ca_key: ec.EllipticCurvePrivateKey, key: ec.EllipticCurvePrivateKey
) -> x509.Certificate:
    addresses = ("127.0.0.1", "127.0.0.2", "::1")
    names: list[x509.GeneralName] = [x509.DNSName("localhost")]
    names += [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
    issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
    return (
        _builder(_named("graphsim"), authority.subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(is_authority=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(issuer, critical=False)
        .sign(ca_key, hashes.SHA256())
    )

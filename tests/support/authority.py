"""A certificate authority made for a test, and server certificates for names of its own."""

from __future__ import annotations

import datetime as dt
import ssl
from ipaddress import ip_address
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path


class Authority:
    """One authority in a folder; trusted by nobody who is not told to.

    Attributes:
        ca: its certificate, ``ca.pem``.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = folder / "ca.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority of a test")])
        folder.mkdir(parents=True, exist_ok=True)
        self.ca.write_bytes(self._signed(self._name, self._key, ()))

    def issue(self, *names: str, stem: str = "server") -> tuple[Path, Path]:
        """Make a server certificate for names and addresses; return it and its key as files."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        certificate, secret = self.folder / f"{stem}.pem", self.folder / f"{stem}.key"
        certificate.write_bytes(self._signed(subject, key, names))
        secret.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return certificate, secret

    def server_context(self, *names: str) -> ssl.SSLContext:
        """Return the TLS side of a server that has these names."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue(*names, stem=names[0]))
        return context

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, names: tuple[str, ...]
    ) -> bytes:
        now = dt.datetime.now(dt.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(days=1))
            .not_valid_after(now + dt.timedelta(days=365))
            .add_extension(x509.BasicConstraints(ca=not names, path_length=None), critical=True)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), False
            )
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False)
        )
        if names:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_general(one) for one in names]), False
            )
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)

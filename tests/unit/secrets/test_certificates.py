from __future__ import annotations

from functools import cache

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from drivefeed.domain.errors import NeedsAttention
from drivefeed.secrets.certificates import Certificate, make_certificate, read_certificate
from support.clock import NOON

DAY_MS = 24 * 3_600_000


@cache
def made() -> Certificate:
    return make_certificate("office", now=NOON, days=30)


def private_part(one: Certificate) -> str:
    return one.pem.removesuffix(one.public_pem)


def protected(one: Certificate, password: bytes) -> bytes:
    key = load_pem_private_key(one.pem.encode(), None)
    kind = BestAvailableEncryption(password)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, kind) + one.public_pem.encode()


def test_a_certificate_says_what_entra_shows() -> None:
    public = x509.load_pem_x509_certificate(made().public_pem.encode())
    assert made().sha1 == public.fingerprint(hashes.SHA1()).hex().upper()
    assert made().sha256 == public.fingerprint(hashes.SHA256()).hex().upper()
    assert made().subject == "CN=drivefeed office"
    assert made().expires_at == NOON + 30 * DAY_MS
    key = public.public_key()
    assert isinstance(key, rsa.RSAPublicKey)
    assert key.key_size >= 2048
    public.verify_directly_issued_by(public)


def test_only_the_whole_holds_the_private_key() -> None:
    assert "PRIVATE KEY" in made().pem
    assert "PRIVATE KEY" not in made().public_pem
    assert "PRIVATE KEY" not in repr(made())


def test_what_was_made_can_be_read_again() -> None:
    assert read_certificate(made().pem.encode()) == made()
    # Whatever comes first in the file.
    turned = made().public_pem + private_part(made())
    assert read_certificate(turned.encode()) == made()
    # A password that nobody asked for is no trouble.
    assert read_certificate(made().pem.encode(), b"needless") == made()


def test_a_protected_file_needs_its_password() -> None:
    content = protected(made(), b"open sesame")
    assert read_certificate(content, b"open sesame") == made()
    with pytest.raises(NeedsAttention, match="--password-stdin"):
        read_certificate(content)
    with pytest.raises(NeedsAttention, match="cannot be read with this password"):
        read_certificate(content, b"open barley")


def elliptic() -> str:
    key = ec.generate_private_key(ec.SECP256R1())
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private.decode() + made().public_pem


def short() -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private.decode() + made().public_pem


def mixed() -> str:
    return private_part(make_certificate("other", now=NOON)) + made().public_pem


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (lambda: made().public_pem, "no private key"),
        (lambda: private_part(made()), "no certificate beside"),
        (lambda: "nothing of the kind", "not a PFX or PEM file"),
        (lambda: "", "not a PFX or PEM file"),
        (elliptic, "RSA keys of 2048 bits or more"),
        (short, "RSA keys of 2048 bits or more"),
        (mixed, "do not belong together"),
        (
            lambda: private_part(made())[:80] + "\n-----END PRIVATE KEY-----\n",
            "not a PFX or PEM file",
        ),
    ],
)
def test_what_cannot_be_used_is_told(content: object, sentence: str) -> None:
    assert callable(content)
    with pytest.raises(NeedsAttention, match=sentence):
        read_certificate(content().encode())

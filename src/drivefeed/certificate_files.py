"""Files with authorities to trust: certificates are taken out of them, and nothing else.

What is trusted is copied for libraries that want one file, so a private key or a secret that lies
in the same file, or is named by mistake, must not come along.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

_MOST_BYTES: Final = 16 * 1024 * 1024
_BLOCK: Final = re.compile(
    rb"-----BEGIN (X509 |TRUSTED )?CERTIFICATE-----[A-Za-z0-9+/=\s]+-----END \1?CERTIFICATE-----"
)


def authorities_in(path: str) -> bytes:
    """Return the certificates of somebody's PEM file, written anew.

    Raises:
        NeedsAttention: it cannot be read, holds no certificate, or holds one that is none.
    """
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    found = []
    for block in blocks_in(path):
        try:
            found.append(x509.load_pem_x509_certificate(block).public_bytes(Encoding.PEM))
        except ValueError as error:
            raise NeedsAttention(
                f"The certificate file {path!r} holds a certificate that cannot be read. Get it "
                "again from whoever runs the proxy or the authority.",
                reason=Reason.CA_FILE_UNUSABLE,
            ) from error
    if not found:
        raise NeedsAttention(
            f"The certificate file {path!r} holds no certificates in PEM. Name the file with the "
            "authority's certificate: it says '-----BEGIN CERTIFICATE-----'.",
            reason=Reason.CA_FILE_UNUSABLE,
        )
    return b"".join(found)


def blocks_in(path: str) -> list[bytes]:
    """Return a file's certificates as they stand there, without looking into them.

    Raises:
        NeedsAttention: it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            whole = file.read(_MOST_BYTES)
    except OSError as error:
        raise NeedsAttention(
            f"The certificate file {path!r} cannot be read ({error.strerror}).",
            reason=Reason.CA_FILE_UNUSABLE,
        ) from error
    return [found[0] for found in _BLOCK.finditer(whole)]

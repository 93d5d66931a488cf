"""Answers that are not what their status says: HTML, half of a JSON text, nesting without end."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from graphsim.faults import Fault

SPOILING = ("not_json", "html", "nested_json")
_JSON, _HTML = "application/json; charset=utf-8", "text/html; charset=utf-8"
_SIGN_IN = (
    "<!DOCTYPE html><html><head><title>Sign in to your account</title></head>"
    "<body><form method='post' action='/common/login'>Enter your password</form></body></html>"
)


def spoiled(fault: Fault, body: bytes) -> tuple[str, bytes]:
    """Return the media type and the body that are sent in place of a JSON body."""
    if fault.kind == "html":
        return _HTML, (fault.extra or _SIGN_IN).encode()
    if fault.kind == "not_json":
        return _JSON, fault.extra.encode() or body[: len(body) // 2]
    depth = max((fault.size - len(b'{"value":}')) // 2, 1)
    return _JSON, b'{"value":' + b"[" * depth + b"]" * depth + b"}"


async def gzipped(body: bytes | AsyncIterator[bytes]) -> bytes:
    """Return a body in the gzip format."""
    packer = zlib.compressobj(wbits=31)
    if isinstance(body, bytes):
        return packer.compress(body) + packer.flush()
    packed = bytearray()
    async for block in body:
        packed += packer.compress(block)
    return bytes(packed + packer.flush())

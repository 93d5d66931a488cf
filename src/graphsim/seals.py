"""Opaque tokens: what graphsim hands out and must recognise later, signed with one secret.

Delta tokens, download URLs, access and refresh tokens all carry their own facts under an HMAC, so
that they outlive a restart of graphsim and can't be made up by a client.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import msgspec

_SIGNATURE = 16


class BadSealError(ValueError):
    """A token that graphsim never issued, or issued for another purpose."""


class Seals:
    """Makes and opens opaque tokens."""

    def __init__(self, secret: bytes) -> None:
        self._secret = secret

    def seal(self, purpose: str, facts: dict[str, Any]) -> str:
        """Return a URL-safe token that carries ``facts`` for ``purpose``."""
        body = msgspec.json.encode(facts)
        return _text(self._sign(purpose, body) + body)

    def open(self, purpose: str, token: str) -> dict[str, Any]:
        """Return the facts of a token made by :meth:`seal` for the same purpose.

        Raises:
            BadSealError: The token is malformed, changed, or of another purpose.
        """
        try:
            raw = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except ValueError as error:
            raise BadSealError("The token is not one of graphsim's.") from error
        signature, body = raw[:_SIGNATURE], raw[_SIGNATURE:]
        if not hmac.compare_digest(signature, self._sign(purpose, body)):
            raise BadSealError("The token was changed, or is not one of graphsim's.")
        facts: dict[str, Any] = msgspec.json.decode(body)
        return facts

    def signature(self, purpose: str, text: str) -> str:
        """Return a signature over readable text, such as the first two parts of a JWT."""
        return _text(self._sign(purpose, text.encode()))

    def is_signature(self, purpose: str, text: str, signature: str) -> bool:
        """Tell whether :meth:`signature` made a signature over this text."""
        return hmac.compare_digest(signature.encode(), self.signature(purpose, text).encode())

    def _sign(self, purpose: str, body: bytes) -> bytes:
        message = purpose.encode() + b"\0" + body
        return hmac.new(self._secret, message, hashlib.sha256).digest()[:_SIGNATURE]


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")

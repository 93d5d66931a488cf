"""One sealed value: AES-GCM, bound to the row that keeps it.

A sealed value is a version byte, a mark of the row, a nonce, and the ciphertext with its tag. The
row's id is associated data, so that a value moved to another row does not open. AES-GCM alone
cannot tell a moved value from a damaged one; the mark, a keyed hash of the row's id, can, so that
each gets its own sentence.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from dataclasses import dataclass, field

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

KEY_BYTES = 32
_VERSION = b"\x01"
_MARK_BYTES = 8
_NONCE_BYTES = 12
_TAG_BYTES = 16
_HEAD_BYTES = len(_VERSION) + _MARK_BYTES + _NONCE_BYTES
_AGAIN = "Enter the secret again, or restore the catalog from a backup."


@dataclass(frozen=True, slots=True)
class Key:
    """A key of 32 bytes. Its id is made from it, so that it needs no name of its own."""

    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        """Refuse a key of another length; callers check what people typed before."""
        assert len(self.secret) == KEY_BYTES

    @property
    def key_id(self) -> str:
        """Twelve hex digits that say nothing of the key, and are the same everywhere."""
        return hashlib.sha256(b"drivefeed key id\0" + self.secret).hexdigest()[:12]

    @classmethod
    def new(cls) -> Key:
        """Make a key of random bytes."""
        return cls(os.urandom(KEY_BYTES))


def seal(key: Key, plain: bytes, *, row_id: str) -> bytes:
    """Return ``plain`` sealed for one row."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    head = _VERSION + _mark(key, row_id)
    nonce = os.urandom(_NONCE_BYTES)
    return head + nonce + AESGCM(key.secret).encrypt(nonce, plain, head + row_id.encode())


def unseal(key: Key, sealed: bytes, *, row_id: str) -> bytes:
    """Return what was sealed for this row with this key.

    Raises:
        NeedsAttention: the value is cut short, of a newer drivefeed, of another row, or damaged.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if len(sealed) < _HEAD_BYTES + _TAG_BYTES:
        raise _refused(f"The secret in row {row_id} is cut short: {len(sealed)} bytes. {_AGAIN}")
    head, nonce = sealed[: 1 + _MARK_BYTES], sealed[1 + _MARK_BYTES : _HEAD_BYTES]
    if head[:1] != _VERSION:
        raise _refused(
            f"The secret in row {row_id} was sealed by a newer drivefeed. Run that version again."
        )
    if not hmac.compare_digest(head[1:], _mark(key, row_id)):
        raise _refused(
            f"The secret in row {row_id} belongs to another row, so somebody or something moved "
            f"it; it is not used. {_AGAIN}"
        )
    try:
        return AESGCM(key.secret).decrypt(nonce, sealed[_HEAD_BYTES:], head + row_id.encode())
    except InvalidTag:
        raise _refused(f"The secret in row {row_id} is damaged. {_AGAIN}") from None


def _mark(key: Key, row_id: str) -> bytes:
    own = hmac.digest(key.secret, b"drivefeed row mark", "sha256")
    return hmac.digest(own, row_id.encode(), "sha256")[:_MARK_BYTES]


def _refused(words: str) -> NeedsAttention:
    return NeedsAttention(words, reason=Reason.SECRETS_LOCKED)

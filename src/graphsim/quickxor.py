"""quickXorHash, the checksum OneDrive publishes for each file.

The algorithm (Microsoft's "Code snippets: QuickXorHash algorithm"): a 160-bit register; byte *i*
of the input is XORed in at bit ``11 * i mod 160``, wrapping around; at the end the length, as a
little-endian 64-bit number, is XORed into the last eight bytes. Bytes that are 160 apart meet at
the same bit, so the input can be folded into rows of 160 bytes first. Python's big integers fold
more than a megabyte per operation, which is why this needs no compiled extension.
"""

from __future__ import annotations

import base64

_WIDTH = 160
_SHIFT = 11
_MASK = (1 << _WIDTH) - 1
_ROWS = 1 << 13
BLOCK = _WIDTH * _ROWS
"""Bytes folded in one step; reading in multiples of it avoids copies."""


class QuickXor:
    """An incremental quickXorHash with the shape of :mod:`hashlib` objects."""

    def __init__(self) -> None:
        self._folded = 0
        self._pending = bytearray()
        self._length = 0

    def update(self, chunk: bytes) -> None:
        """Add ``chunk`` to the hashed bytes."""
        self._length += len(chunk)
        view = memoryview(chunk)
        if self._pending:
            take = min(BLOCK - len(self._pending), len(view))
            self._pending += view[:take]
            view = view[take:]
            if len(self._pending) < BLOCK:
                return
            self._folded ^= int.from_bytes(self._pending, "little")
            self._pending.clear()
        while len(view) >= BLOCK:
            self._folded ^= int.from_bytes(view[:BLOCK], "little")
            view = view[BLOCK:]
        self._pending += view

    def digest(self) -> bytes:
        """Return the 20 bytes of the hash so far."""
        folded = self._folded ^ int.from_bytes(self._pending, "little")
        rows = 1
        while rows * _WIDTH * 8 < folded.bit_length():
            rows *= 2
        while rows > 1:
            rows //= 2
            half = rows * _WIDTH * 8
            folded = (folded >> half) ^ (folded & ((1 << half) - 1))
        state = 0
        for index, byte in enumerate(folded.to_bytes(_WIDTH, "little")):
            rotated = byte << (index * _SHIFT % _WIDTH)
            state ^= (rotated & _MASK) ^ (rotated >> _WIDTH)
        state ^= (self._length & (2**64 - 1)) << (_WIDTH - 64)
        return state.to_bytes(_WIDTH // 8, "little")

    def base64(self) -> str:
        """Return the hash as Graph writes it in ``file.hashes.quickXorHash``."""
        return base64.b64encode(self.digest()).decode("ascii")


def quickxor(content: bytes) -> str:
    """Return the base64 quickXorHash of ``content``."""
    state = QuickXor()
    state.update(content)
    return state.base64()

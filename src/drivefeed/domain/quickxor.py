"""quickXorHash, the only content hash that all OneDrive and SharePoint drives have.

Each byte is XORed into a 160-bit ring, 11 bits further than the byte before it; at the end the
length is XORed into the last 8 bytes. 160 steps of 11 bits are 11 whole turns, so bytes that lie
a multiple of 160 apart fall on the same place: the file can be folded into 160 bytes first, with
XORs of very long integers, and only those 160 are spread over the ring.
"""

from __future__ import annotations

from base64 import b64encode

_CYCLE = 160
"""Bytes after which positions on the ring repeat; also the width of the ring in bits."""
_SHIFT = 11
_RING = (1 << _CYCLE) - 1
_PIECE = _CYCLE * 256
"""Bytes folded at a time: small enough for the caches, large enough to leave Python idle."""


def _fold(block: int, cycles: int) -> int:
    """XOR the ``cycles`` 160-byte parts of a long integer together."""
    while cycles > 1:
        half = (cycles + 1) // 2
        bits = half * _CYCLE * 8
        high = block >> bits
        block = (block ^ (high << bits)) ^ high
        cycles = half
    return block


class QuickXor:
    """A streaming quickXorHash; any split of the bytes into updates gives the same value."""

    def __init__(self) -> None:
        self._cells = 0
        self._length = 0

    def update(self, chunk: bytes) -> None:
        """Add bytes; takes about a millisecond per MiB or less, so fine on the event loop."""
        view = memoryview(chunk)
        for start in range(0, len(view), _PIECE):
            piece = view[start : start + _PIECE]
            offset = self._length % _CYCLE
            block = int.from_bytes(piece, "little") << (8 * offset)
            self._cells ^= _fold(block, -(-(offset + len(piece)) // _CYCLE))
            self._length += len(piece)

    def digest(self) -> bytes:
        """Return the 20 bytes of the hash so far."""
        ring = 0
        for place, byte in enumerate(self._cells.to_bytes(_CYCLE, "little")):
            turned = byte << (place * _SHIFT % _CYCLE)
            ring ^= (turned & _RING) | (turned >> _CYCLE)
        ring ^= (self._length & ((1 << 64) - 1)) << (_CYCLE - 64)
        return ring.to_bytes(_CYCLE // 8, "little")

    def base64digest(self) -> str:
        """Return the hash as Graph writes it."""
        return b64encode(self.digest()).decode("ascii")

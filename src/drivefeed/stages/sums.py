"""Size and hashes of what is copied, taken while it passes."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drivefeed.domain.errors import Permanent
from drivefeed.domain.quickxor import QuickXor
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass(slots=True)
class Sums:
    """Size and hashes of a stream, while it passes."""

    size: int
    sha256: hashlib._Hash
    quick_xor: QuickXor

    @classmethod
    def empty(cls) -> Sums:
        """Return those of a stream of which nothing passed."""
        return cls(0, hashlib.sha256(), QuickXor())

    def _update(self, piece: bytes) -> None:
        self.size += len(piece)
        self.sha256.update(piece)
        self.quick_xor.update(piece)

    async def watch(
        self, pieces: AsyncIterator[bytes], most: int | None = None
    ) -> AsyncIterator[bytes]:
        """Pass a stream through; hashing happens off the event loop.

        Raises:
            Permanent: it has more than ``most`` bytes.
        """
        async for piece in pieces:
            await asyncio.to_thread(self._update, piece)
            require_size(self.size, most)
            yield piece


def require_size(size: int | None, most: int | None) -> None:
    """Refuse what is larger than its connections want, whatever the listing said.

    Raises:
        Permanent: it is.
    """
    if size is not None and most is not None and size > most:
        raise Permanent(
            f"It has more than the {most} bytes that its connection takes, unlike its listing.",
            reason=Reason.LARGER_THAN_LIMIT,
        )

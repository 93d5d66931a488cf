"""One collection with its embedder, and who uses it just now."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.ports import Embedder, VectorIndex


class Users:
    """Counts who uses something, so that its removal can wait for them."""

    def __init__(self) -> None:
        self._count = 0
        self._none = asyncio.Event()

    @asynccontextmanager
    async def counted(self) -> AsyncIterator[None]:
        """Be one of them."""
        self._count += 1
        self._none.clear()
        try:
            yield
        finally:
            self._count -= 1
            if not self._count:
                self._none.set()

    async def gone(self) -> None:
        """Wait until there is none."""
        if self._count:
            await self._none.wait()


@dataclass(slots=True, eq=False)
class Collection:
    """An index and the embedder that its vectors are made with.

    Attributes:
        name: as the catalog knows it.
        choice: the organization's choice that opened the embedder, and its revision; None where
            the settings did.
    """

    name: str
    embedder: Embedder
    index: VectorIndex
    choice: tuple[str, int] | None = None
    _users: Users = field(default_factory=Users)

    @asynccontextmanager
    async def kept_open(self) -> AsyncIterator[Collection]:
        """Keep it from being removed."""
        async with self._users.counted():
            yield self

    async def unused(self) -> None:
        """Wait until nobody uses it."""
        await self._users.gone()

    async def aclose(self) -> None:
        """Close index and embedder."""
        await self.index.aclose()
        await self.embedder.aclose()

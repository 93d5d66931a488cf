"""The collections of a vector index: the one in use, and the one that a reindex builds beside it.

The shelf is itself a :class:`~drivefeed.ports.VectorIndex`, over the collection in use. Who needs
the embedder too, and the same collection from beginning to end, takes it with :meth:`Shelf.using`.

While a second collection is built, what hides, shows, moves or removes points is done to both.
Points of new imports go to the one in use alone; the builder finds them in the catalog. The swap
happens in a standstill: no write is under way, and those that come wait for its end. Searches go
on; one that began with the former collection ends with it, and only then may that be removed.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from drivefeed.domain.errors import Transient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from drivefeed.ports import Embedder, Point, SearchFilter, SearchHit, VectorIndex


class Swapped(Transient):
    """Another collection was put in use: begin again with that one."""


@dataclass(slots=True, eq=False)
class Collection:
    """An index and the embedder that its vectors are made with.

    Attributes:
        name: as the catalog knows it.
    """

    name: str
    embedder: Embedder
    index: VectorIndex
    _users: int = 0
    _unused: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def kept_open(self) -> AsyncIterator[Collection]:
        """Keep it from being removed."""
        self._users += 1
        self._unused.clear()
        try:
            yield self
        finally:
            self._users -= 1
            if not self._users:
                self._unused.set()

    async def unused(self) -> None:
        """Wait until nobody uses it."""
        if self._users:
            await self._unused.wait()

    async def aclose(self) -> None:
        """Close index and embedder."""
        await self.index.aclose()
        await self.embedder.aclose()


class Shelf:
    """The collection in use, and the turn in which it is swapped.

    Args:
        current: the collection in use.

    Attributes:
        current: the same; another after a swap.
        building: what a reindex builds, or None.
    """

    def __init__(self, current: Collection) -> None:
        self.current = current
        self.building: Collection | None = None
        self._open = asyncio.Event()
        self._open.set()
        self._writers = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._both = asyncio.Lock()

    @asynccontextmanager
    async def using(self) -> AsyncIterator[Collection]:
        """Take the collection in use; it is not removed meanwhile, though it may be swapped."""
        async with self.current.kept_open() as one:
            yield one

    @asynccontextmanager
    async def writing(self, one: Collection | None = None) -> AsyncIterator[Collection]:
        """Write for a short while; no swap happens meanwhile. It must not be nested.

        Args:
            one: what must be in use still.

        Raises:
            Swapped: it is not.
        """
        while not self._open.is_set():
            await self._open.wait()
        self._writers += 1
        self._quiet.clear()
        try:
            if one is not None and one is not self.current:
                raise Swapped(f"The collection '{one.name}' is not in use any more.")
            yield self.current
        finally:
            self._writers -= 1
            if not self._writers:
                self._quiet.set()

    @asynccontextmanager
    async def standstill(self) -> AsyncIterator[None]:
        """Let no write begin, and wait for those that are under way."""
        self._open.clear()
        try:
            await self._quiet.wait()
            yield
        finally:
            self._open.set()

    @asynccontextmanager
    async def placing(self) -> AsyncIterator[None]:
        """Keep points of both collections as they are for a while; for the builder alone."""
        async with self._both:
            yield

    def put_in_use(self) -> Collection:
        """Swap, within a standstill; return the former collection."""
        assert self.building is not None
        former, self.current, self.building = self.current, self.building, None
        return former

    async def upsert(self, points: Sequence[Point]) -> None:
        """Write points to the collection in use."""
        async with self.writing() as one:
            await one.index.upsert(points)

    async def search(
        self, *, vector: Sequence[float], text: str, where: SearchFilter, limit: int
    ) -> list[SearchHit]:
        """Find the best points of the collection in use."""
        async with self.using() as one:
            return await one.index.search(vector=vector, text=text, where=where, limit=limit)

    async def set_live(self, *, import_id: str, round_: int, live: bool) -> int:
        """Set the live flag on all points of a round; return how many there are in use."""
        async with self._each() as indexes:
            counts = [
                await index.set_live(import_id=import_id, round_=round_, live=live)
                for index in indexes
            ]
        return counts[-1]

    async def set_folders(self, *, document_id: str, name: str, folders: tuple[str, ...]) -> int:
        """Update name and folders of a document; return how many points there are in use."""
        async with self._each() as indexes:
            counts = [
                await index.set_folders(document_id=document_id, name=name, folders=folders)
                for index in indexes
            ]
        return counts[-1]

    async def remove(self, *, import_id: str, round_: int) -> int:
        """Remove all points of a round; return how many were in use."""
        async with self._each() as indexes:
            counts = [await index.remove(import_id=import_id, round_=round_) for index in indexes]
        return counts[-1]

    async def count(self, *, import_id: str | None = None, round_: int | None = None) -> int:
        """Count points of the collection in use."""
        async with self.using() as one:
            return await one.index.count(import_id=import_id, round_=round_)

    async def rounds(self) -> AsyncIterator[tuple[str, int, bool, int]]:
        """Yield (import id, round, live, points) for the collection in use."""
        async with self.using() as one:
            async for row in one.index.rounds():
                yield row

    async def points_of(self, *, import_id: str, round_: int) -> list[str]:
        """Return the ids of a round's points in the collection in use."""
        async with self.using() as one:
            return await one.index.points_of(import_id=import_id, round_=round_)

    async def remove_points(self, ids: Sequence[str]) -> int:
        """Remove points by their ids; return how many were in use."""
        async with self._each() as indexes:
            counts = [await index.remove_points(ids) for index in indexes]
        return counts[-1]

    async def check(self) -> None:
        """Check that the collection in use answers and fits its embedding model.

        Raises:
            PartDown, NeedsAttention: with a sentence that says what is wrong.
        """
        async with self.using() as one:
            await one.index.check()

    async def drop(self) -> None:
        """Erase the collection in use."""
        await self.current.index.drop()

    async def aclose(self) -> None:
        """Close all collections."""
        for one in (self.building, self.current):
            if one is not None:
                await one.aclose()

    @asynccontextmanager
    async def _each(self) -> AsyncIterator[list[VectorIndex]]:
        """Hand out the indexes to write to, the one in use last: its answer counts."""
        async with self.writing() as one, AsyncExitStack() as stack:
            if self.building is None:
                yield [one.index]
                return
            await stack.enter_async_context(self._both)
            yield [self.building.index, one.index]

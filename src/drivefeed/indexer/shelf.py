"""The collections of a vector index: the one in use, and the one that a reindex builds beside it.

There is a shelf for the documents of the installation, and one for each organization
(:mod:`drivefeed.indexer.library`). An organization without a collection of its own is a *lodger*:
its shelf leads to what the installation has in use, and keeps a gate of its own in front of it, so
that it can move out without anybody else's noticing.

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
from typing import TYPE_CHECKING

from drivefeed.domain.errors import Transient
from drivefeed.indexer.collection import Collection, Users
from drivefeed.indexer.pause import Pause

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from drivefeed.ports import Point, RoundRow, SearchFilter, SearchHit, VectorIndex


class Swapped(Transient):
    """Another collection was put in use: begin again with that one."""


class Shelf:
    """The collection in use, and the turn in which it is swapped.

    Args:
        own: the collection in use; None for a lodger.
        house: the installation's shelf, for one of an organization.

    Attributes:
        building: what a reindex builds, or None.
        leaving: whether the house may still hold points of an organization that moved out.
        pause: how long the embedder of the collection in use is not asked.
    """

    def __init__(self, own: Collection | None, *, house: Shelf | None = None) -> None:
        self._own = own
        self._house = house
        self.building: Collection | None = None
        self.leaving = False
        self._pause = Pause()
        self._open = asyncio.Event()
        self._open.set()
        self._writers = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._both = asyncio.Lock()
        self._users = self._former_users = Users()

    @property
    def current(self) -> Collection:
        """The collection in use; another after a swap."""
        if self._own is not None:
            return self._own
        assert self._house is not None
        return self._house.current

    @property
    def is_lodger(self) -> bool:
        """Whether the collection in use is the installation's, and this shelf is not."""
        return self._own is None

    @property
    def is_returning(self) -> bool:
        """Whether what is built is in the installation's collection, which others use."""
        return self._house is not None and self.building is self._house.current

    @property
    def pause(self) -> Pause:
        """How long the embedder of the collection in use is not asked."""
        return self._house.pause if self._own is None and self._house else self._pause

    @asynccontextmanager
    async def using(self) -> AsyncIterator[Collection]:
        """Take the collection in use; it is not removed meanwhile, though it may be swapped."""
        async with self._users.counted(), self.current.kept_open() as one:
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
            if self._own is None:
                assert self._house is not None
                async with self._house.writing(one) as current:
                    yield current
            elif one is not None and one is not self._own:
                raise Swapped(f"The collection '{one.name}' is not in use any more.")
            else:
                yield self._own
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

    def put_in_use(self) -> Collection | None:
        """Swap, within a standstill.

        Returns:
            The former collection, which is to be removed; None for a lodger that moved out.
        """
        assert self.building is not None
        former = self._own
        self.leaving = self._own is None
        self._own, self.building = None if self.is_returning else self.building, None
        self._former_users, self._users = self._users, Users()
        self._pause = Pause()
        return former

    async def vacated(self) -> None:
        """Wait for those who use what was in use before the last swap."""
        await self._former_users.gone()

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

    async def rounds(self, *, org_id: str | None = None) -> AsyncIterator[RoundRow]:
        """Yield (import id, round, live, points) for the collection in use."""
        async with self.using() as one:
            async for row in one.index.rounds(org_id=org_id):
                yield row

    async def remove_of(self, *, org_id: str) -> int:
        """Remove all points of an organization from the collection in use."""
        async with self.writing() as one:
            return await one.index.remove_of(org_id=org_id)

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
        """Close all collections of this shelf."""
        building = None if self.is_returning else self.building
        for one in (building, self._own):
            if one is not None:
                await one.aclose()

    @asynccontextmanager
    async def _each(self) -> AsyncIterator[list[VectorIndex]]:
        """Hand out the indexes to write to, the one in use last: its answer counts."""
        async with self.writing() as one, AsyncExitStack() as stack:
            shelves = [self._house, self] if self._own is None and self._house else [self]
            beside = []
            for shelf in shelves:
                if shelf.building is not None:
                    await stack.enter_async_context(shelf._both)  # noqa: SLF001 - of one kind
                    beside.append(shelf.building.index)
            yield [*beside, one.index]

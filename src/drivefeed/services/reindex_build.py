"""The work of a reindex: rounds of imports built in another collection, compared, and swapped."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.catalog import reindexing
from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import Permanent, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from drivefeed.catalog.engine import Catalog
    from drivefeed.indexer.indexing import Indexing
    from drivefeed.indexer.shelf import Collection, Shelf
    from drivefeed.ports import Submission

_AT_ONCE = 50
_TRIES = 3

_log = log("reindex")


class Rebuild:
    """Builds what the catalog knows in the collection that is not in use, and puts it in use.

    Args:
        index: what the catalog calls the index.
    """

    def __init__(self, catalog: Catalog, shelf: Shelf, indexing: Indexing, *, index: str) -> None:
        self._catalog = catalog
        self._shelf = shelf
        self._indexing = indexing
        self._index = index

    def _passing(self, effect: str) -> AbstractContextManager[None]:
        return passing(self._catalog.checkpoint, effect)

    async def build_missing(self, building: Collection) -> bool:
        """Build all that is known to be missing; True if there was something."""
        after = ""
        while found := await reindexing.unbuilt(
            self._catalog, building.name, limit=_AT_ONCE, after=after
        ):
            for sent in found:
                if self._shelf.building is not building:
                    return True
                await self._build(sent, building)
            after = found[-1].import_id
        return bool(after)

    async def _build(self, sent: Submission, building: Collection) -> None:
        for attempt in range(1, _TRIES + 1):
            try:
                chunks = await self._indexing.build(sent, building)
                break
            except (Permanent, Transient) as error:
                if isinstance(error, Permanent) or attempt == _TRIES:
                    await reindexing.record_built(
                        self._catalog,
                        building.name,
                        sent,
                        chunks=None,
                        reason=getattr(error, "reason", Reason.ATTEMPTS_EXHAUSTED),
                        detail=str(error),
                    )
                    return
        async with self._shelf.placing():
            await self._place(sent, building, chunks)

    async def _place(self, sent: Submission, building: Collection, chunks: int) -> None:
        """Give the points the flag and the place that they should have now."""
        standing = await reindexing.standing_of(self._catalog, sent)
        if standing is None:
            with self._passing("reindex.place"):
                await building.index.remove(import_id=sent.import_id, round_=sent.round)
            return
        if (standing.name, standing.folders) != (sent.name, sent.folders):
            with self._passing("reindex.place"):
                await building.index.set_folders(
                    document_id=sent.document_id, name=standing.name, folders=standing.folders
                )
        if standing.live:
            with self._passing("reindex.place"):
                await building.index.set_live(
                    import_id=sent.import_id, round_=sent.round, live=True
                )
        await reindexing.record_built(self._catalog, building.name, sent, chunks=chunks)

    async def swap(self, building: Collection) -> Collection | None:
        """Put the collection in use if nothing is missing; return the former one."""
        if await reindexing.unbuilt(self._catalog, building.name, limit=1):
            return None
        async with self._shelf.standstill():
            if self._shelf.building is not building or not await self._agree(building):
                return None
            with self._passing("reindex.swap"):
                found = await reindexing.swap(self._catalog, self._index, building.name)
                if found is None:
                    return None
                former = self._shelf.put_in_use()
        _log.info("reindex_swapped", to=building.name)
        return former

    async def _agree(self, building: Collection) -> bool:
        """Make both collections show the same rounds; False where one has to be built again."""
        current = {
            (import_id, round_): live
            async for import_id, round_, live, _ in self._shelf.current.index.rounds()
        }
        wanted = await reindexing.built(self._catalog, building.name)
        lost = {key for key, points in wanted.items() if points and key in current}
        again: set[tuple[str, int]] = set()
        async for import_id, round_, live, points in building.index.rounds():
            key = (import_id, round_)
            lost.discard(key)
            if key not in wanted:
                with self._passing("reindex.agree"):
                    await building.index.remove(import_id=import_id, round_=round_)
            elif points != wanted[key]:
                again.add(key)
            elif live is not current.get(key, live):
                with self._passing("reindex.agree"):
                    await building.index.set_live(import_id=import_id, round_=round_, live=not live)
        for import_id, round_ in again | lost:
            await reindexing.forget_built(self._catalog, building.name, import_id, round_)
        return not again and not lost

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

    from drivefeed.catalog.reindexing import Beside
    from drivefeed.indexer.collection import Collection
    from drivefeed.indexer.shelf import Shelf
    from drivefeed.ports import Submission
    from drivefeed.services.reindex_parts import ReindexParts

_AT_ONCE = 50
_TRIES = 3

_log = log("reindex")


class Rebuild:
    """Builds what the catalog knows in a collection that is not in use, and puts it in use.

    Args:
        shelf: what is to be swapped.
        beside: what is built, and for whom.
        building: the same, opened.
    """

    def __init__(
        self, parts: ReindexParts, shelf: Shelf, beside: Beside, building: Collection
    ) -> None:
        self._parts = parts
        self._catalog = parts.catalog
        self._shelf = shelf
        self._beside = beside
        self._building = building
        self._is_common = shelf.is_returning

    @property
    def _guard(self) -> tuple[str, str] | None:
        return self._parts.turns.guard if self._parts.turns is not None else None

    def _passing(self, effect: str) -> AbstractContextManager[None]:
        return passing(self._catalog.checkpoint, effect)

    async def build_missing(self) -> bool:
        """Build all that is known to be missing; True if there was something."""
        after = ""
        while found := await reindexing.unbuilt(
            self._catalog, self._beside, limit=_AT_ONCE, after=after
        ):
            for sent in found:
                if self._shelf.building is not self._building:
                    return True
                await self._build(sent)
            after = found[-1].import_id
        return bool(after)

    async def _build(self, sent: Submission) -> None:
        for attempt in range(1, _TRIES + 1):
            try:
                chunks = await self._parts.indexing.build(sent, self._building)
                break
            except (Permanent, Transient) as error:
                if isinstance(error, Permanent) or attempt == _TRIES:
                    await reindexing.record_built(
                        self._catalog,
                        self._building.name,
                        sent,
                        chunks=None,
                        reason=getattr(error, "reason", Reason.ATTEMPTS_EXHAUSTED),
                        detail=str(error),
                    )
                    return
        async with self._shelf.placing():
            await self._place(sent, chunks)

    async def _place(self, sent: Submission, chunks: int) -> None:
        """Give the points the flag and the place that they should have now."""
        index = self._building.index
        if self._shelf.building is not self._building and not self._is_common:
            return
        standing = await reindexing.standing_of(self._catalog, self._beside, sent)
        if standing is None or self._shelf.building is not self._building:
            with self._passing("reindex.place"):
                await index.remove(import_id=sent.import_id, round_=sent.round)
            return
        if (standing.name, standing.folders) != (sent.name, sent.folders):
            with self._passing("reindex.place"):
                await index.set_folders(
                    document_id=sent.document_id, name=standing.name, folders=standing.folders
                )
        if standing.live:
            with self._passing("reindex.place"):
                await index.set_live(import_id=sent.import_id, round_=sent.round, live=True)
        await reindexing.record_built(self._catalog, self._building.name, sent, chunks=chunks)

    async def swap(self) -> bool:
        """Put the collection in use if nothing is missing; tell whether it was."""
        if await reindexing.unbuilt(self._catalog, self._beside, limit=1):
            return False
        async with self._shelf.standstill():
            if self._shelf.building is not self._building or not await self._agree():
                return False
            with self._passing("reindex.swap"):
                if await reindexing.swap(self._catalog, self._beside, self._guard) is None:
                    return False
                self._shelf.put_in_use()
        _log.info("reindex_swapped", to=self._building.name, org_id=self._beside.org_id or None)
        return True

    async def _agree(self) -> bool:
        """Make both collections show the same rounds; False where one has to be built again."""
        index, org_id = self._building.index, self._beside.org_id or None
        current = {
            (import_id, round_): live
            async for import_id, round_, live, _ in self._shelf.current.index.rounds(org_id=org_id)
        }
        wanted = await reindexing.built(self._catalog, self._beside)
        lost = {key for key, points in wanted.items() if points and key in current}
        again: set[tuple[str, int]] = set()
        async for import_id, round_, live, points in index.rounds(org_id=org_id):
            key = (import_id, round_)
            lost.discard(key)
            if key not in wanted:
                with self._passing("reindex.agree"):
                    await index.remove(import_id=import_id, round_=round_)
            elif points != wanted[key]:
                again.add(key)
            elif live is not current.get(key, live):
                with self._passing("reindex.agree"):
                    await index.set_live(import_id=import_id, round_=round_, live=not live)
        for import_id, round_ in again | lost:
            await reindexing.forget_built(self._catalog, self._building.name, import_id, round_)
        return not again and not lost

"""Another embedding model, while search goes on: build beside, catch up, swap, remove the old.

Everything that decides is in the catalog: which collection is in use, which is being built, and
which rounds of imports it has. A process that is killed goes on where it was; the round in hand is
built once more, and its points replace what is there, for they have the same ids. Nothing is
downloaded, and nothing is charged: the texts come from the object store.

What changes meanwhile: hiding, showing, moving and removing goes to both collections
(:mod:`drivefeed.indexer.shelf`); new imports are built here when their indexing is done. The swap
is made in a standstill of writers, after both collections were compared round by round.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from drivefeed.catalog import collections, reindexing
from drivefeed.domain.errors import (
    DrivefeedError,
    NeedsAttention,
    Permanent,
    Throttled,
    Transient,
)
from drivefeed.domain.reasons import Reason
from drivefeed.domain.retry import backoff_ms
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.catalog.collections import Collections, Made
    from drivefeed.catalog.engine import Catalog
    from drivefeed.indexer.indexing import Indexing
    from drivefeed.indexer.shelf import Collection, Shelf
    from drivefeed.ports import Submission

_AT_ONCE = 50
_TRIES = 3
_MOST_ROUNDS = 20

_log = log("reindex")


@dataclass(frozen=True, slots=True)
class ReindexState:
    """How a reindex stands.

    Attributes:
        state: ``idle``, ``building``, or ``held`` where files could not be read again.
        active: what search uses, in words.
        building: what is being built, in words; empty while idle.
        trouble: what keeps it from going on, as a sentence.
        unreadable: files that could not be read again, each with its reason.
    """

    state: str
    active: str
    building: str = ""
    done: int = 0
    total: int = 0
    failed: int = 0
    trouble: str = ""
    unreadable: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "state": self.state,
            "active": self.active,
            "building": self.building,
            "done": self.done,
            "total": self.total,
            "failed": self.failed,
            "trouble": self.trouble,
            "unreadable": list(self.unreadable),
        }


class Reindexing:
    """Builds a collection beside the one in use; one in each process that owns the index.

    Args:
        index: what the catalog calls the index.
        open_collection: opens one of its collections.
        target_of: tells what a name of the settings is made with, None for the settings' own.
    """

    def __init__(
        self,
        catalog: Catalog,
        shelf: Shelf,
        indexing: Indexing,
        *,
        index: str,
        open_collection: Callable[[Made], Collection],
        target_of: Callable[[str | None], Made],
    ) -> None:
        self._catalog = catalog
        self._shelf = shelf
        self._indexing = indexing
        self._index = index
        self._open_collection = open_collection
        self._target_of = target_of
        self._wanted = asyncio.Event()
        self._trouble = ""
        self._held = False

    async def start(self, to: str | None = None, *, leave_out: bool = False) -> ReindexState:
        """Begin to build, or go on with what is being built.

        Args:
            to: a name of the settings; None for what they ask for.
            leave_out: put in use even if files could not be read again.

        Raises:
            NeedsAttention: there is nothing to change, another reindex is under way, or the
                provider refuses.
            Transient, Throttled, PartDown: the provider does not answer.
        """
        target = self._target_of(to)
        known = await collections.collections_of(self._catalog, self._index)
        if known.building is None:
            await self._begin(known, target, leave_out=leave_out)
        elif to is not None and known.building.embedding != target.embedding:
            raise NeedsAttention(
                f"A reindex to {known.building.words} is under way. Wait for it, or stop it with "
                "'drivefeed reindex --cancel'.",
                reason=Reason.MISCONFIGURED,
            )
        else:
            await collections.begin_building(
                self._catalog, self._index, known.building, leave_out=leave_out
            )
        self._held = False
        self._wanted.set()
        return await self.state()

    async def _begin(self, known: Collections, target: Made, *, leave_out: bool) -> None:
        assert known.active is not None
        if known.active.embedding == target.embedding:
            raise NeedsAttention(
                f"The index is made with {target.words} already. Name another embedding with "
                "--to; a daemon that runs knows those that its settings had when it started.",
                reason=Reason.MISCONFIGURED,
            )
        await self._ask(target)
        found = await collections.begin_building(
            self._catalog, self._index, target, leave_out=leave_out
        )
        assert found.building is not None
        self._shelf.building = self._open_collection(found.building)
        _log.info("reindex_begins", to=target.words)

    async def _ask(self, target: Made) -> None:
        """Have the model embed a word before anything is recorded."""
        tried = self._open_collection(target)
        try:
            await tried.embedder.check()
        finally:
            await tried.aclose()

    async def cancel(self) -> ReindexState:
        """Stop building, and remove what was built."""
        await collections.give_up_building(self._catalog, self._index)
        building, self._shelf.building = self._shelf.building, None
        if building is not None:
            await building.unused()
            await building.aclose()
        self._wanted.set()
        return await self.state()

    async def state(self) -> ReindexState:
        """Return how it stands."""
        known = await collections.collections_of(self._catalog, self._index)
        active = known.active.words if known.active else ""
        if known.building is None:
            return ReindexState("idle", active)
        name = known.building.name
        counted = await reindexing.progress_of(self._catalog, name)
        failed = await reindexing.unreadable(self._catalog, name) if counted.failed else []
        return ReindexState(
            state="held" if self._held else "building",
            active=active,
            building=known.building.words,
            done=counted.done,
            total=counted.total,
            failed=counted.failed,
            trouble=self._trouble,
            unreadable=tuple(f"{one.name}: {one.detail}" for one in failed),
        )

    async def run(self) -> None:
        """Build whenever there is something to build, until cancelled."""
        failures = 0
        while True:
            self._wanted.clear()
            try:
                await self.work()
            except DrivefeedError as error:
                failures += 1
                self._trouble = str(error)
                wait = backoff_ms(
                    failures,
                    fraction=self._catalog.ids.fraction(),
                    first_ms=1_000,
                    longest_ms=30_000,
                )
                seconds = error.seconds if isinstance(error, Throttled) else wait / 1000
                _log.warning("reindex_waits", error=str(error), seconds=round(seconds))
                await self._catalog.clock.sleep(seconds)
            else:
                failures, self._trouble = 0, ""
                await self._wanted.wait()

    async def work(self) -> None:
        """Build to the end and swap, or until something stands in the way.

        Raises:
            Transient, Throttled, PartDown, NeedsAttention: as their docstrings say.
        """
        known = await collections.collections_of(self._catalog, self._index)
        await self._remove_old(known)
        rounds = 0
        while (building := self._shelf.building) is not None:
            async with building.kept_open():
                if await self._build_some(building):
                    continue
                if await self._is_held(building):
                    return
                former = await self._swap(building)
            rounds += 1
            if former is None and rounds == _MOST_ROUNDS:
                raise Transient(
                    "Files change faster than they can be built in the new collection, or its "
                    "points do not stay as they were written."
                )
            if former is not None:
                await former.unused()
                await former.embedder.aclose()
                await former.index.drop()
                await collections.forget_old(self._catalog, self._index, former.name)

    async def _build_some(self, building: Collection) -> bool:
        """Build all that is known to be missing; True if there was something."""
        found = await reindexing.unbuilt(self._catalog, building.name, limit=_AT_ONCE)
        for sent in found:
            if self._shelf.building is not building:
                return True
            await self._build(sent, building)
            self._trouble = ""
        return bool(found)

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
            await building.index.remove(import_id=sent.import_id, round_=sent.round)
            return
        if (standing.name, standing.folders) != (sent.name, sent.folders):
            await building.index.set_folders(
                document_id=sent.document_id, name=standing.name, folders=standing.folders
            )
        if standing.live:
            await building.index.set_live(import_id=sent.import_id, round_=sent.round, live=True)
        self._catalog.checkpoint("reindex.built.before")
        await reindexing.record_built(self._catalog, building.name, sent, chunks=chunks)

    async def _is_held(self, building: Collection) -> bool:
        known = await collections.collections_of(self._catalog, self._index)
        counted = await reindexing.progress_of(self._catalog, building.name)
        self._held = bool(counted.failed) and not known.leave_out
        if self._held:
            _log.warning("reindex_held", failed=counted.failed)
        return self._held

    async def _swap(self, building: Collection) -> Collection | None:
        """Put the collection in use if nothing is missing; return the former one."""
        if await reindexing.unbuilt(self._catalog, building.name, limit=1):
            return None
        async with self._shelf.standstill():
            if self._shelf.building is not building or not await self._agree(building):
                return None
            self._catalog.checkpoint("reindex.swap.before")
            found = await reindexing.swap(self._catalog, self._index, building.name)
            if found is None:
                return None
            former = self._shelf.put_in_use()
        self._catalog.checkpoint("reindex.swap.after")
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
                await building.index.remove(import_id=import_id, round_=round_)
            elif points != wanted[key]:
                again.add(key)
            elif live is not current.get(key, live):
                await building.index.set_live(import_id=import_id, round_=round_, live=not live)
        for import_id, round_ in again | lost:
            await reindexing.forget_built(self._catalog, building.name, import_id, round_)
        return not again and not lost

    async def _remove_old(self, known: Collections) -> None:
        for name in known.old:
            if known.active is None or name == known.active.name:
                continue
            left = self._open_collection(replace(known.active, name=name))
            await left.embedder.aclose()
            await left.index.drop()
            await collections.forget_old(self._catalog, self._index, name)

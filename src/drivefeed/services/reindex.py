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
from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import (
    DrivefeedError,
    NeedsAttention,
    Throttled,
    Transient,
)
from drivefeed.domain.reasons import Reason
from drivefeed.domain.retry import backoff_ms
from drivefeed.services.reindex_build import Rebuild
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.catalog.collections import Collections, Made
    from drivefeed.catalog.engine import Catalog
    from drivefeed.indexer.indexing import Indexing
    from drivefeed.indexer.shelf import Collection, Shelf

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
        self._rebuild = Rebuild(catalog, shelf, indexing, index=index)
        self._index = index
        self._open_collection = open_collection
        self._target_of = target_of
        self._wanted = asyncio.Event()
        self._trouble = ""
        self._held = False

    async def start(
        self, to: str | None = None, *, leave_out: bool = False, anew: bool = False
    ) -> ReindexState:
        """Begin to build, or go on with what is being built.

        Args:
            to: a name of the settings; None for what they ask for.
            leave_out: put in use even if files could not be read again.
            anew: build even with the model that is in use, for an index that was lost or damaged.

        Raises:
            NeedsAttention: there is nothing to change, another reindex is under way, or the
                provider refuses.
            Transient, Throttled, PartDown: the provider does not answer.
        """
        target = self._target_of(to)
        known = await collections.collections_of(self._catalog, self._index)
        if known.building is None:
            await self._begin(known, target, leave_out=leave_out, anew=anew)
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

    async def _begin(
        self, known: Collections, target: Made, *, leave_out: bool, anew: bool
    ) -> None:
        assert known.active is not None
        if known.active.embedding == target.embedding and not anew:
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
            except Exception as error:  # noqa: BLE001 - it must not end the daemon
                failures += 1
                is_known = isinstance(error, DrivefeedError)
                self._trouble = str(error) if is_known else f"{type(error).__name__}: {error}"
                wait = backoff_ms(
                    failures,
                    fraction=self._catalog.ids.fraction(),
                    first_ms=1_000,
                    longest_ms=30_000,
                )
                seconds = error.seconds if isinstance(error, Throttled) else wait / 1000
                _log.warning(
                    "reindex_waits",
                    error=self._trouble,
                    seconds=round(seconds),
                    exc_info=not is_known,
                )
                await self._catalog.clock.sleep(seconds)
                self._trouble = ""
            else:
                failures = 0
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
                if await self._rebuild.build_missing(building):
                    continue
                if await self._is_held(building):
                    return
                former = await self._rebuild.swap(building)
            rounds += 1
            if former is None and rounds == _MOST_ROUNDS:
                raise Transient(
                    "Files change faster than they can be built in the new collection, or its "
                    "points do not stay as they were written."
                )
            if former is not None:
                await former.unused()
                await former.embedder.aclose()
                with passing(self._catalog.checkpoint, "reindex.drop"):
                    await former.index.drop()
                await collections.forget_old(self._catalog, self._index, former.name)

    async def _is_held(self, building: Collection) -> bool:
        known = await collections.collections_of(self._catalog, self._index)
        counted = await reindexing.progress_of(self._catalog, building.name)
        self._held = bool(counted.failed) and not known.leave_out
        if self._held:
            _log.warning("reindex_held", failed=counted.failed)
        return self._held

    async def _remove_old(self, known: Collections) -> None:
        for name in known.old:
            if known.active is None or name == known.active.name:
                continue
            left = self._open_collection(replace(known.active, name=name))
            await left.embedder.aclose()
            with passing(self._catalog.checkpoint, "reindex.drop"):
                await left.index.drop()
            await collections.forget_old(self._catalog, self._index, name)

"""Another embedding model, while search goes on: build beside, catch up, swap, remove the old.

Everything that decides is in the catalog: which collection is in use, which is being built, and
which rounds of imports it has. A process that is killed goes on where it was; the round in hand is
built once more, and its points replace what is there, for they have the same ids. Nothing is
downloaded, and nothing is charged: the texts come from the object store.

What changes meanwhile: hiding, showing, moving and removing goes to both collections
(:mod:`drivefeed.indexer.shelf`); new imports are built here when their indexing is done. The swap
is made in a standstill of writers, after both collections were compared round by round.

The installation has a reindex, and so has each organization (:mod:`drivefeed.indexer.library`).
They work one after the other; one that cannot go on does not keep the others.

Where many processes have the index of a server open, one works while it has it alone
(:mod:`drivefeed.services.index_turns`): a swap is known to the process that makes it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from drivefeed.catalog.collection_rows import ALL
from drivefeed.catalog.collections import orgs_with_collections
from drivefeed.domain.errors import DrivefeedError, Throttled
from drivefeed.domain.retry import backoff_ms
from drivefeed.services.reindex_one import ReindexOfOne
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from drivefeed.catalog.collection_rows import Made
    from drivefeed.services.reindex_parts import ReindexParts
    from drivefeed.services.reindex_state import ReindexState

_log = log("reindex")


class Reindexing:
    """Builds collections beside those in use; one in each process that owns the index.

    Args:
        target_of: tells what a name of the settings is made with, None for the settings' own; and
            what an organization asks for, None where it is to be with the installation.
    """

    def __init__(
        self,
        parts: ReindexParts,
        *,
        target_of: Callable[[str | None, str], Awaitable[Made | None]],
    ) -> None:
        self._parts = parts
        self._catalog = parts.catalog
        self._target_of = target_of
        self._wanted = asyncio.Event()
        self._known: dict[str, ReindexOfOne] = {}

    async def start(
        self,
        to: str | None = None,
        *,
        org_id: str = ALL,
        leave_out: bool = False,
        anew: bool = False,
    ) -> ReindexState:
        """Begin to build, or go on with what is being built.

        Args:
            to: a name of the settings; None for what they ask for, or the organization does.
            org_id: whose documents; empty for all who have no collection of their own.
            leave_out: put in use even if files could not be read again.
            anew: build even with the model that is in use, for an index that was lost or damaged.

        Raises:
            NeedsAttention: there is nothing to change, another reindex is under way, other
                processes have the index open, or the provider refuses.
            Transient, Throttled, PartDown: the provider does not answer.
        """
        one = self._of(org_id)
        target = await self._target_of(to, org_id)
        async with self._parts.alone():
            await one.start(target, leave_out=leave_out, anew=anew)
        self._wanted.set()
        return await one.state()

    async def cancel(self, *, org_id: str = ALL) -> ReindexState:
        """Stop building, and remove what was built.

        Raises:
            NeedsAttention: other processes have the index open, and may write to what was built.
        """
        async with self._parts.alone():
            await self._of(org_id).cancel()
        self._wanted.set()
        return await self.state(org_id=org_id)

    async def state(self, *, org_id: str = ALL) -> ReindexState:
        """Return how it stands."""
        return await self._of(org_id).state()

    async def run(self) -> None:
        """Build whenever there is something to build, until cancelled."""
        failures = 0
        while True:
            self._wanted.clear()
            wait = await self._work_on_all(failures)
            if wait is None:
                failures = 0
                await self._wanted.wait()
            else:
                failures += 1
                await self._catalog.clock.sleep(wait)

    async def work(self, *, org_id: str | None = None) -> None:
        """Build to the end and swap, or until something stands in the way.

        Args:
            org_id: whose documents; None for everything that there is to do.

        Raises:
            Transient, Throttled, PartDown, NeedsAttention: as their docstrings say.
        """
        for each in await self._all() if org_id is None else [org_id]:
            await self._work_on(self._of(each))

    async def _work_on(self, one: ReindexOfOne) -> None:
        if await one.has_work():
            async with self._parts.alone():
                await one.work()

    async def _work_on_all(self, failures: int) -> float | None:
        """Work on everything there is; return after how many seconds to try again, or None."""
        waits: list[float] = []
        try:
            everybody = await self._all()
        except DrivefeedError as error:
            _log.warning("reindex_waits", error=str(error))
            return self._backoff(failures)
        for org_id in everybody:
            one = self._of(org_id)
            one.trouble = ""
            try:
                await self._work_on(one)
            except Exception as error:  # noqa: BLE001 - it must not end the daemon
                is_known = isinstance(error, DrivefeedError)
                one.trouble = str(error) if is_known else f"{type(error).__name__}: {error}"
                seconds = error.seconds if isinstance(error, Throttled) else self._backoff(failures)
                waits.append(seconds)
                _log.warning(
                    "reindex_waits",
                    error=one.trouble,
                    org_id=org_id or None,
                    seconds=round(seconds),
                    exc_info=not is_known,
                )
        return min(waits, default=None)

    def _backoff(self, failures: int) -> float:
        wait = backoff_ms(
            failures + 1,
            fraction=self._catalog.ids.fraction(),
            first_ms=1_000,
            longest_ms=30_000,
        )
        return wait / 1000

    async def _all(self) -> list[str]:
        return [ALL, *await orgs_with_collections(self._catalog, self._parts.index)]

    def _of(self, org_id: str) -> ReindexOfOne:
        found = self._known.get(org_id)
        if found is None:
            found = self._known[org_id] = ReindexOfOne(self._parts, org_id)
        return found

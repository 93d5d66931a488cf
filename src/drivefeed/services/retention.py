"""Retention: once a day, whatever is old and of no more use leaves the catalog in small pieces."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drivefeed.catalog import retention
from drivefeed.catalog.heartbeats import release_lease, take_lease
from drivefeed.domain.notices import DAY_MS
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog

LEASE = "retention"
TICK_SECONDS = 30.0
PASS_EVERY_MS = DAY_MS
CHUNKS_A_TICK = 20
_LEASE_MS = 4 * int(TICK_SECONDS * 1000)

_log = log("retention")


@dataclass(frozen=True, slots=True)
class Ages:
    """How old a row must be to go, in milliseconds.

    Attributes:
        events: steps of ended rounds.
        ends: how a round ended, and the last words about a version that is gone.
        index_jobs: jobs of the embedded backend whose rounds ended.
        notices: notices that are over, with their deliveries.
        sessions: links and sessions of the status page, after their end.
        heartbeats: processes that were seen last.
    """

    events: int
    ends: int
    index_jobs: int
    notices: int
    sessions: int
    heartbeats: int


class Retention:
    """Prunes by age; of several processes, one does it at a time.

    A pass looks at everything once, in chunks of a thousand rows with a transaction each, and a
    bounded number of chunks at each tick, so that nothing else waits for it.

    Args:
        owner: names this process.
    """

    def __init__(self, catalog: Catalog, ages: Ages, *, owner: str) -> None:
        self._catalog = catalog
        self._ages = ages
        self._owner = owner
        self._under_way: AsyncIterator[tuple[str, int]] | None = None
        self._pruned: Counter[str] = Counter()

    async def tick(self) -> bool:
        """Do a bounded piece of work if it is time; True while there is more to do."""
        if self._under_way is None and not await self._is_time():
            return False
        if await take_lease(self._catalog, LEASE, self._owner, for_ms=_LEASE_MS) is None:
            self._under_way = None
            return False
        if self._under_way is None:
            # Somebody else may have done it between the look and the lease.
            if not await self._is_time():
                await release_lease(self._catalog, LEASE, self._owner)
                return False
            self._under_way, self._pruned = self._pass(), Counter()
        for _ in range(CHUNKS_A_TICK):
            chunk = await anext(self._under_way, None)
            if chunk is None:
                await self._done()
                return False
            kind, count = chunk
            self._pruned[kind] += count
        return True

    async def _is_time(self) -> bool:
        last = await retention.last_pass(self._catalog)
        return last is None or self._catalog.clock.now() - last[0] >= PASS_EVERY_MS

    async def _done(self) -> None:
        self._under_way = None
        await retention.record_pass(self._catalog, self._pruned)
        await release_lease(self._catalog, LEASE, self._owner)
        if self._pruned.total():
            _log.info("pruned", **self._pruned)

    async def _pass(self) -> AsyncIterator[tuple[str, int]]:
        """Yield after each chunk: what was pruned, and how many rows."""
        catalog, ages, now = self._catalog, self._ages, self._catalog.clock.now()
        # Words are cleared before the events that tell their age are gone.
        key: str | None = ""
        while key is not None:
            count, key = await retention.prune_details(catalog, after=key, before=now - ages.ends)
            yield "details", count
        number: int | None = 0
        while number is not None:
            count, number = await retention.prune_events(
                catalog,
                after=number,
                steps_before=now - ages.events,
                ends_before=now - ages.ends,
            )
            yield "events", count
        key = ""
        while key is not None:
            count, key = await retention.prune_index_jobs(
                catalog, after=key, before=now - ages.index_jobs
            )
            yield "index_jobs", count
        while count := await retention.prune_notices(catalog, before=now - ages.notices):
            yield "notices", count
        yield "sessions", await retention.prune_sessions(catalog, before=now - ages.sessions)
        yield "heartbeats", await retention.prune_heartbeats(catalog, before=now - ages.heartbeats)

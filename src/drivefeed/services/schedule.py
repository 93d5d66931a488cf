"""What happens on a schedule: due drives and quotas, heartbeats, lost deliveries, leftovers."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Any

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from drivefeed.catalog import heartbeats
from drivefeed.catalog.parts_down import Down
from drivefeed.catalog.quota_limits import turn_due
from drivefeed.catalog.sources import wake_due_drives
from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import Part, PartDown
from drivefeed.domain.pace import REVISIT_MS
from drivefeed.domain.redact import redact
from drivefeed.services.loop import unbroken
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from drivefeed.catalog.engine import Catalog
    from drivefeed.ports import ObjectStore
    from drivefeed.services.relay import Relay
    from drivefeed.stages.breaker import Breakers

_UPLOADS_OLDER_THAN_MS = 24 * 3600 * 1000
LOOK_SECONDS = 1.0

_log = log("schedule")


def _is_worth_a_line(record: logging.LogRecord) -> bool:
    """Whether it is no tick that APScheduler cancels at its end, which it logs as a failure."""
    return not (record.exc_info and isinstance(record.exc_info[1], asyncio.CancelledError))


logging.getLogger("apscheduler.executors.default").addFilter(_is_worth_a_line)


class Schedule:
    """Jobs of one process on APScheduler, each at most once at a time.

    APScheduler drops a tick that is a second late unless told otherwise, hence the grace of None.

    Args:
        is_whole: whether everything is looked after, or only this process's heartbeat.
        breakers: told when the catalog cannot be written, so that people see it; what they find
            down is told with the heartbeat.

    Attributes:
        beat_at: when the last heartbeat was written, by the monotonic clock.
        revisit_ms: how long after word of a change its drive is asked once more.
    """

    def __init__(
        self,
        catalog: Catalog,
        relay: Relay,
        store: ObjectStore,
        *,
        owner: str,
        role: str,
        is_whole: bool = True,
        breakers: Breakers | None = None,
    ) -> None:
        self._catalog = catalog
        self._relay = relay
        self._store = store
        self._owner = owner
        self._role = role
        self._is_whole = is_whole
        self._breakers = breakers
        self.beat_at = time.monotonic()
        self._down: dict[str, Down] = {}
        self._down_told: dict[str, Down] | None = None
        self.revisit_ms = REVISIT_MS
        self._scheduler = AsyncIOScheduler(
            timezone="UTC",
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        )

    def every(self, seconds: float, name: str, do: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Add a job of somebody else's, before or after the start."""
        self._every(seconds, name, do)

    def start(self) -> None:
        """Start ticking on the running event loop."""
        self._every(3.0, "heartbeat", self._beat)
        if self._is_whole:
            self._every(3.0, "reap", self._reap)
            self._every(LOOK_SECONDS, "drives", self._wake)
            self._every(2.0, "quotas", self._turn)
            self._every(2.0, "emptied", self._relay.notice_emptied_queue)
            self._every(3.0, "lost", self._relay.bring_back)
            self._every(5.0, "queue", self._relay.look)
            self._every(3600.0, "uploads", self._sweep)
        self._scheduler.start()

    def stop(self) -> None:
        """Tick no more."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)

    def _every(self, seconds: float, name: str, do: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        async def tick() -> None:
            try:
                await unbroken(do())
            except PartDown as error:
                # The next tick tries again; the relay says once that the queue is down.
                _log.debug("tick_postponed", job=name, error=str(error))
            except Exception as error:  # noqa: BLE001 - a tick or worker must not end the others
                _log.error("tick_failed", job=name, error=str(error), exc_info=True)

        self._scheduler.add_job(tick, "interval", seconds=seconds, id=name)

    async def _beat(self) -> None:
        down = self._look_down()
        try:
            await heartbeats.beat(
                self._catalog,
                self._owner,
                self._role,
                down=None if down == self._down_told else down,
            )
        except PartDown as error:
            if self._breakers is not None:
                self._breakers.note(error.part, redact(str(error)))
            raise
        self._down_told = down
        self.beat_at = time.monotonic()
        if self._breakers is not None:
            self._breakers.calm(Part.CATALOG)

    def _look_down(self) -> dict[str, Down]:
        """Return what is down, each since it was first found so without a break."""
        now = self._catalog.clock.now()
        found = self._breakers.open_parts() if self._breakers is not None else {}
        before = self._down
        self._down = {
            name: Down(before[name].since if name in before else now, words)
            for name, words in found.items()
        }
        return self._down

    async def _reap(self) -> None:
        freed = await heartbeats.reap(self._catalog, own=self._owner)
        if freed:
            _log.warning("dead_owners_rows_due", count=freed)

    async def _wake(self) -> None:
        await wake_due_drives(self._catalog, revisit_ms=self.revisit_ms)

    async def _turn(self) -> None:
        count = await turn_due(self._catalog)
        if count:
            _log.info("quotas_due", count=count)

    async def _sweep(self) -> None:
        before = self._catalog.clock.now() - _UPLOADS_OLDER_THAN_MS
        with passing(self._catalog.checkpoint, "uploads.sweep"):
            count = await self._store.abort_uploads(before=before)
        if count:
            _log.info("uploads_aborted", count=count)

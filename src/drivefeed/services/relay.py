"""The relay: moves due reminders to the queues, and brings back what got lost there."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING

from drivefeed.catalog import deliveries
from drivefeed.domain.errors import PartDown
from drivefeed.domain.identity import job_id
from drivefeed.ports import JobSpec, Stage
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from drivefeed.catalog.deliveries import Reminder
    from drivefeed.catalog.engine import Catalog
    from drivefeed.ports import Queue

HORIZON_MS = 60_000
"""Rows due within this time wait in Redis as delayed jobs, where the board shows them."""
REMIND_MS = 15_000
IDLE_SECONDS = 1.0
"""What this process commits wakes the relay; only rows of other processes wait this long."""
_SETTLE_SECONDS = 0.06
_LOOKED_AT = 500

_log = log("relay")


class Relay:
    """Sends due rows, a bounded window of them per queue.

    Several relays may run: a delivery's id names the row's number, so that sending a row twice
    makes one job.

    Args:
        windows: how many jobs of a stage may be in Redis and not yet ended.
        attempts: how many attempts a delivery of a stage has.
    """

    def __init__(
        self,
        catalog: Catalog,
        queue: Queue,
        *,
        windows: Mapping[Stage, int],
        attempts: Mapping[Stage, int],
    ) -> None:
        self._catalog = catalog
        self._queue = queue
        self._windows = windows
        self._attempts = attempts
        self._is_down = False

    async def run(self) -> None:
        """Send whatever becomes due, until cancelled.

        The sentinel is looked for before anything is sent: found missing later, it would let what
        was sent in between be sent again.
        """
        sentinel_is_set = False
        while True:
            self._catalog.changed.clear()
            try:
                if not sentinel_is_set:
                    await self.notice_emptied_queue()
                    sentinel_is_set = True
                sent = await self.send_due()
                self._up()
            except PartDown as error:
                self._down(error)
                sent = 0
            if sent:
                continue
            try:
                async with asyncio.timeout(IDLE_SECONDS):
                    await self._catalog.changed.wait()
                # Commits come in bursts; one look serves them all.
                await asyncio.sleep(_SETTLE_SECONDS)
            except TimeoutError:
                continue

    def _down(self, error: PartDown) -> None:
        if not self._is_down:
            _log.warning("queue_down", error=str(error))
        self._is_down = True

    def _up(self) -> None:
        if self._is_down:
            _log.info("queue_back")
        self._is_down = False

    async def send_due(self) -> int:
        """Send rows that are due and unsent, as far as the windows allow; return how many.

        Raises:
            PartDown: the queue does not answer; rows stay unsent.
        """
        now = self._catalog.clock.now()
        async with self._catalog.read() as connection:
            stages = await deliveries.stages_due(connection, now=now, horizon_ms=HORIZON_MS)
        sent = 0
        for name in stages:
            sent += await self._send(Stage(name), now)
        return sent

    async def _send(self, stage: Stage, now: int) -> int:
        counts = await self._queue.counts(stage)
        # Delayed jobs are ours as well, but what is due now must not wait behind them.
        here = counts["waiting"] + counts["active"] + counts.get("paused", 0)
        room = self._windows[stage] - here
        if room <= 0:
            return 0
        async with self._catalog.read() as connection:
            due = await deliveries.due(
                connection, stage, now=now, horizon_ms=HORIZON_MS, limit=room
            )
        if not due:
            return 0
        await self._queue.add([self._job(one, stage, now) for one in due])
        self._catalog.checkpoint("relay.add.after")
        async with self._catalog.write("relay", beside=True) as connection:
            await deliveries.mark_sent(connection, due, now=now, remind_at=now + REMIND_MS)
        return len(due)

    def _job(self, one: Reminder, stage: Stage, now: int) -> JobSpec:
        return JobSpec(
            stage=stage,
            job_id=job_id(stage, one.subject_id, one.number),
            payload={**one.payload, "number": one.number},
            delay_ms=max(0, one.due_at - now),
            attempts=self._attempts[stage],
            priority=one.lane,
        )

    async def bring_back(self) -> int:
        """Find deliveries that were sent and are gone from the queue; return how many are due anew.

        Raises:
            PartDown: the queue does not answer.
        """
        now = self._catalog.clock.now()
        async with self._catalog.read() as connection:
            overdue = await deliveries.overdue(connection, now=now, limit=_LOOKED_AT)
        if not overdue:
            return 0
        lost, alive = await self._sort(overdue)
        async with self._catalog.write("bring_back", beside=True) as connection:
            await deliveries.send_again(connection, lost)
            await deliveries.keep_waiting(connection, alive, remind_at=now + REMIND_MS)
        if lost:
            _log.info("deliveries_lost", count=len(lost))
        return len(lost)

    async def _sort(self, overdue: Sequence[Reminder]) -> tuple[list[Reminder], list[Reminder]]:
        by_stage: dict[str, list[Reminder]] = defaultdict(list)
        for one in overdue:
            by_stage[one.stage].append(one)
        lost: list[Reminder] = []
        alive: list[Reminder] = []
        for name, group in by_stage.items():
            stage = Stage(name)
            ids = {job_id(stage, one.subject_id, one.number): one for one in group}
            pending = await self._queue.pending(stage, list(ids))
            for key, one in ids.items():
                (alive if key in pending else lost).append(one)
        return lost, alive

    async def notice_emptied_queue(self) -> bool:
        """Where Redis lost its sentinel, every row counts as unsent; True if it had.

        Raises:
            PartDown: the queue does not answer.
        """
        if await self._queue.generation() is not None:
            return False
        async with self._catalog.write("emptied") as connection:
            count = await deliveries.unsend_all(connection)
        await self._queue.set_generation(self._catalog.ids.new())
        if count:
            _log.warning("queue_was_empty", due=count)
        return True

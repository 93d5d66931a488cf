"""The relay: moves due reminders to the queues, and brings back what got lost there."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from typing import TYPE_CHECKING

from drivefeed.catalog import deliveries, deliveries_sent
from drivefeed.catalog.reminders import LANE_BACKFILL
from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import Part, PartDown
from drivefeed.domain.gate import OPEN
from drivefeed.domain.identity import delivered_by, job_id
from drivefeed.domain.redact import redact
from drivefeed.ports import JobSpec, Stage
from drivefeed.services.loop import unbroken
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from drivefeed.catalog.deliveries import Reminder
    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.gate import Gate
    from drivefeed.ports import Queue
    from drivefeed.stages.breaker import Breakers

HORIZON_MS = 60_000
"""Rows due within this time wait in Redis as delayed jobs, where the board shows them."""
REMIND_MS = 15_000
IDLE_SECONDS = 1.0
"""What this process commits wakes the relay; only rows of other processes wait this long."""
_SETTLE_SECONDS = 0.06
_LOOKED_AT = 500
_TURNS = 1_000

_log = log("relay")


class Relay:
    """Sends due rows, a bounded window of them per queue.

    Several relays may run: a delivery's id names the row's number, so that sending a row twice
    makes one job.

    Args:
        windows: how many jobs of a stage may be in Redis and not yet ended, and as many again that
            are due within a minute.
        attempts: how many attempts a delivery of a stage has.
        gate: says which transfers may not begin now.
        breakers: told when the queue or the catalog does not answer, so that people see it.

    Attributes:
        turned_at: when it last looked for something to send, by the monotonic clock.
    """

    def __init__(
        self,
        catalog: Catalog,
        queue: Queue,
        *,
        windows: Mapping[Stage, int],
        attempts: Mapping[Stage, int],
        breakers: Breakers | None = None,
        gate: Callable[[], Gate] = lambda: OPEN,
    ) -> None:
        self._catalog = catalog
        self._queue = queue
        self._windows = windows
        self._attempts = attempts
        self._breakers = breakers
        self._down_for: dict[str, Part] = {}
        self.turned_at = time.monotonic()
        self._gate = gate

    async def run(self) -> None:
        """Send whatever becomes due, until cancelled.

        The sentinel is looked for before anything is sent: found missing later, it would let what
        was sent in between be sent again.
        """
        sentinel_is_set = False
        while True:
            self._catalog.changed.clear()
            self.turned_at = time.monotonic()
            try:
                if not sentinel_is_set:
                    await unbroken(self.notice_emptied_queue())
                    sentinel_is_set = True
                sent = await unbroken(self.send_due())
                self._up(during="send")
            except PartDown as error:
                self._down(error, during="send")
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

    def _down(self, error: PartDown, *, during: str) -> None:
        said = redact(str(error))
        if error.part not in self._down_for.values():
            _log.warning(f"{error.part}_down", error=said)
        self._down_for[during] = error.part
        if self._breakers is not None:
            self._breakers.note(error.part, said)

    def _up(self, *, during: str) -> None:
        part = self._down_for.pop(during, None)
        if part is None or part in self._down_for.values():
            return  # a full Redis answers questions, and refuses jobs
        _log.info(f"{part}_back")
        if self._breakers is not None and part is Part.QUEUE:
            self._breakers.close(part)

    async def look(self) -> None:
        """Ask the queue whether it is fit, so that people see it even while nothing is due.

        Raises:
            PartDown: it is not, or does not answer.
        """
        try:
            await self._queue.check()
        except PartDown as error:
            self._down(error, during="look")
            raise
        self._up(during="look")

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
        gate = self._gate() if stage is Stage.TRANSFER else OPEN
        if gate.is_shut:
            return 0
        held = {LANE_BACKFILL: gate.orgs}
        counts = await self._queue.counts(stage)
        # What is due now does not wait behind what is due within a minute; each has its window.
        here = counts["waiting"] + counts["active"] + counts.get("paused", 0)
        window = self._windows[stage]
        if here >= window and counts["active"]:
            here -= await self._count_void(stage)
        async with self._catalog.read() as connection:
            due = await deliveries.due(
                connection, stage, now=now, horizon_ms=0, limit=window - here, held=held
            )
            due += await deliveries.due(
                connection,
                stage,
                now=now,
                after=now,
                horizon_ms=HORIZON_MS,
                limit=window - counts["delayed"],
                held=held,
            )
        if not due:
            return 0
        with passing(self._catalog.checkpoint, "relay.add"):
            await self._queue.add([self._job(one, stage, now) for one in due])
        async with self._catalog.write("relay.sent", beside=True) as connection:
            await deliveries.mark_sent(connection, due, now=now, remind_at=now + REMIND_MS)
        return len(due)

    async def _count_void(self, stage: Stage) -> int:
        """Count active deliveries whose worker died and whose rows were sent anew.

        The queue finds them half a minute after a start. Where processes die sooner than that,
        again and again, they would fill the window and nothing would be sent.
        """
        taken = [delivered_by(one) for one in await self._queue.active(stage)]
        async with self._catalog.read() as connection:
            current = await deliveries_sent.count_current(connection, _newest(taken))
        return len(taken) - current

    def _job(self, one: Reminder, stage: Stage, now: int) -> JobSpec:
        return JobSpec(
            stage=stage,
            job_id=job_id(stage, one.subject_id, one.number),
            payload={**one.payload, "number": one.number},
            delay_ms=max(0, one.due_at - now),
            attempts=self._attempts[stage],
            # Within a lane, whoever has fewer deliveries in the queue comes first.
            priority=one.lane * _TURNS + min(one.turn, _TURNS - 1),
        )

    async def bring_back(self) -> int:
        """Find deliveries that were sent and are gone from the queue; return how many are due anew.

        Raises:
            PartDown: the queue does not answer.
        """
        now = self._catalog.clock.now()
        async with self._catalog.read() as connection:
            overdue = await deliveries_sent.overdue(connection, now=now, limit=_LOOKED_AT)
        if not overdue:
            return 0
        lost, alive = await self._sort(overdue)
        async with self._catalog.write("relay.bring_back", beside=True) as connection:
            await deliveries_sent.send_again(connection, lost)
            await deliveries_sent.keep_waiting(connection, alive, remind_at=now + REMIND_MS)
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

    async def send_again_what_was_taken(self) -> int:
        """Make due anew what a worker took from the queue and never claimed; return how many.

        To be called where no worker is alive. The queue itself would give such deliveries back
        only when it holds their worker for dead, after half a minute.

        Raises:
            PartDown: the queue does not answer.
        """
        active = [delivered_by(one) for stage in Stage for one in await self._queue.active(stage)]
        async with self._catalog.read() as connection:
            taken = await deliveries_sent.unclaimed(connection, _newest(active))
        if taken:
            async with self._catalog.write("relay.taken", beside=True) as connection:
                await deliveries_sent.send_again(connection, taken)
            _log.info("deliveries_taken", count=len(taken))
        return len(taken)

    async def notice_emptied_queue(self) -> bool:
        """Where Redis lost its sentinel, every row counts as unsent; True if it had.

        Raises:
            PartDown: the queue does not answer.
        """
        if await self._queue.generation() is not None:
            return False
        async with self._catalog.write("relay.emptied") as connection:
            count = await deliveries_sent.unsend_all(connection)
        with passing(self._catalog.checkpoint, "relay.sentinel"):
            await self._queue.set_generation(self._catalog.ids.new())
        if count:
            _log.warning("queue_was_empty", due=count)
        return True


def _newest(delivered: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Return the highest number of each subject among deliveries."""
    numbers: dict[str, int] = {}
    for subject_id, number in delivered:
        numbers[subject_id] = max(number, numbers.get(subject_id, number))
    return numbers

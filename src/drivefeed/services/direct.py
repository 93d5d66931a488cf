"""Does what is due of one stage without a queue, for a process that has only that to do.

The outbox row is enough: it says what is due, it is claimed by one, and it survives the process.
What a queue adds (a board, many machines) is not needed here.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from drivefeed.catalog import deliveries
from drivefeed.domain.errors import DrivefeedError
from drivefeed.domain.identity import job_id
from drivefeed.domain.redact import redact
from drivefeed.domain.retry import backoff_ms
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from drivefeed.catalog.deliveries import Reminder
    from drivefeed.catalog.engine import Catalog
    from drivefeed.ports import Stage
    from drivefeed.stages.runner import Runner
    from drivefeed.stages.stage import StageRun

_LOOK_SECONDS: Final = 1.0
_MOST_LOOKED_AT: Final = 1_000

_log = log("direct")


@dataclass
class DirectDelivery:
    """A delivery that comes from the outbox itself."""

    stage: Stage
    job_id: str
    payload: Mapping[str, Any]
    attempt: int
    attempts: int

    async def progress(self, percent: int) -> None:
        """Nobody looks; the job itself remembers."""


@dataclass
class Direct:
    """Works on one stage.

    Attributes:
        wake: set it where something became due, to be looked at without waiting.
        is_ready: whether a subject that is due can be worked on already.
    """

    catalog: Catalog
    runner: Runner
    stage: StageRun
    attempts: int
    concurrency: int
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    is_ready: Callable[[str], Awaitable[bool]] | None = None
    _failed: dict[str, int] = field(default_factory=dict)
    _not_before: dict[str, int] = field(default_factory=dict)

    async def run(self) -> None:
        """Work until cancelled; running work is handed back then."""
        running: dict[str, asyncio.Task[None]] = {}
        async with asyncio.TaskGroup() as group:
            while True:
                self.wake.clear()
                for one in await self._look(self.concurrency - len(running), running):
                    task = group.create_task(self._work(one), name=f"direct {one.subject_id}")
                    running[one.subject_id] = task
                    task.add_done_callback(partial(self._ended, running, one.subject_id))
                try:
                    async with asyncio.timeout(_LOOK_SECONDS):
                        await self.wake.wait()
                except TimeoutError:
                    continue

    def _ended(
        self, running: dict[str, asyncio.Task[None]], subject_id: str, _task: asyncio.Task[None]
    ) -> None:
        running.pop(subject_id, None)
        self.wake.set()

    async def _look(self, room: int, running: Mapping[str, object]) -> list[Reminder]:
        try:
            return await self._due(room, running)
        except DrivefeedError as error:
            _log.warning("look_failed", error=redact(str(error)))
            return []

    async def _due(self, room: int, running: Mapping[str, object]) -> list[Reminder]:
        if room <= 0:
            return []
        now = self.catalog.clock.now()
        async with self.catalog.read() as connection:
            found = await deliveries.due(
                connection,
                self.stage.stage,
                now=now,
                horizon_ms=0,
                limit=_MOST_LOOKED_AT,
            )
        free: list[Reminder] = []
        for one in found:
            subject = one.subject_id
            if subject in running or self._not_before.get(subject, 0) > now or len(free) == room:
                continue
            if self.is_ready is None or await self.is_ready(subject):
                free.append(one)
        return free

    async def _work(self, one: Reminder) -> None:
        attempt = self._failed.get(one.subject_id, 0) + 1
        delivery = DirectDelivery(
            self.stage.stage,
            job_id(one.stage, one.subject_id, one.number),
            {**one.payload, "number": one.number},
            attempt,
            self.attempts,
        )
        try:
            await self.runner.bind(self.stage)(delivery)
        except Exception as error:  # noqa: BLE001 - the runner recorded it; the next attempt is ours to make
            _log.info("attempt_again", subject_id=one.subject_id, error=type(error).__name__)
            wait = backoff_ms(attempt, fraction=self.catalog.ids.fraction())
            self._failed[one.subject_id] = attempt
            self._not_before[one.subject_id] = self.catalog.clock.now() + wait
        else:
            self._failed.pop(one.subject_id, None)
            self._not_before.pop(one.subject_id, None)

"""The daemon: one role or all of them in one process, started in order and ended in order."""

from __future__ import annotations

import asyncio
import os
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING

from drivefeed.assembly import (
    open_files,
    open_indexing,
    open_page,
    open_queue,
    open_turns,
    stages_of,
)
from drivefeed.catalog import heartbeats
from drivefeed.domain.errors import DrivefeedError, PartDown
from drivefeed.embedding import difference
from drivefeed.errands import Errands, open_door, serve_health
from drivefeed.keeping import gatekeeper_of, keep_house, watch_budgets
from drivefeed.outward import notices_of, outbound_of
from drivefeed.ports import Stage
from drivefeed.queue.table import QUEUES
from drivefeed.roles import UP, is_alone, owner_name, owns_embedded_index
from drivefeed.services.gate import LOOK_SECONDS
from drivefeed.services.health import Health
from drivefeed.services.loop import LoopWatch, spare_the_collector
from drivefeed.services.ownership import IndexOwnership
from drivefeed.services.pulse import Pulse
from drivefeed.services.relay import Relay
from drivefeed.services.schedule import Schedule
from drivefeed.services.workers import Workers
from drivefeed.stages.breaker import Breakers
from drivefeed.stages.runner import Runner
from drivefeed.telemetry import log
from drivefeed.tracing import configure_tracing, stop_tracing
from drivefeed.workload import attempts_of, concurrency_of, windows_of

if TYPE_CHECKING:
    from drivefeed.bootstrap import Parts
    from drivefeed.indexer.indexing import Indexing
    from drivefeed.indexer.reading import StoredFiles
    from drivefeed.queue.bullmq import BullmqQueue
    from drivefeed.roles import Role
    from drivefeed.services.index_turns import IndexTurns

_HAND_BACK_SECONDS = 3.0
_BACKENDS_SECONDS = 10.0
_WORK_ON_FILES = frozenset(Stage) - {Stage.DISCOVER, Stage.ADMIT}

_log = log("daemon")


class Daemon:
    """Everything, or one role, in one process over open parts.

    Args:
        role: what it does of the whole.
        pace_seconds: a wait before each run of a stage that works on a file, for demos.

    Attributes:
        ready: set once deliveries flow.
        stopping: set once it was asked to end.
        loop_watch: how long the event loop stalled.
    """

    def __init__(self, parts: Parts, *, role: Role = UP, pace_seconds: float = 0.0) -> None:
        self.parts = parts
        self.role = role
        self._pace_seconds = pace_seconds
        self.ready = asyncio.Event()
        self._queue: BullmqQueue | None = None
        self._runner: Runner | None = None
        self._workers: Workers | None = None
        self._ownership: IndexOwnership | IndexTurns | None = None
        self._turns: IndexTurns | None = None
        self.loop_watch = LoopWatch()
        around = parts.around
        self.breakers = Breakers(around.clock, around.ids, others=parts.backends.down)
        self.owner = owner_name(around.ids.new())
        self.stopping = asyncio.Event()
        self.health = Health(
            role=role.name,
            breakers=self.breakers,
            loop_watch=self.loop_watch,
            ready=self.ready,
            stopping=self.stopping,
        )
        self._running: asyncio.Task[None] | None = None

    @property
    def pace_seconds(self) -> float:
        """The wait before each run of a stage that works on a file; may be set at any time."""
        return self._pace_seconds

    @pace_seconds.setter
    def pace_seconds(self, seconds: float) -> None:
        self._pace_seconds = seconds
        if self._runner is not None:
            self._runner.pace_seconds = seconds

    async def pause_workers(self) -> None:
        """Stop the workers of all stages that work on files; everything else goes on.

        Changes are still discovered and sent to the queues, where they wait. Running jobs may
        finish, as at the end of the daemon.
        """
        if self._workers is not None:
            grace = self.parts.settings.shutdown_seconds
            await self._workers.pause(_WORK_ON_FILES, grace=grace)

    def resume_workers(self) -> None:
        """Start the workers again."""
        if self._workers is not None:
            self._workers.resume()

    @property
    def workers_paused(self) -> bool:
        """Whether the workers were stopped alone."""
        return self._workers is not None and bool(self._workers.paused)

    async def jobs_waiting(self) -> dict[Stage, int]:
        """Return how many jobs wait in the queues, by stage; stages without any are left out.

        Raises:
            PartDown: the queue does not answer.
        """
        found: dict[Stage, int] = {}
        if self._queue is not None:
            for stage in QUEUES:
                waiting = (await self._queue.counts(stage))["waiting"]
                if waiting:
                    found[stage] = waiting
        return found

    def stop(self) -> None:
        """Ask for an orderly end; a second call ends at once.

        While it starts there is no work yet that could be finished: the start is given up.
        """
        if self.stopping.is_set():
            os._exit(130)
        self.stopping.set()
        if self._running is not None and not self.ready.is_set():
            self._running.cancel()

    async def run(self) -> None:
        """Run until stopped.

        Raises:
            DrivefeedError: a part cannot be opened; the sentence says which and why.
        """
        self._running = asyncio.current_task()
        try:
            await self._run()
        except asyncio.CancelledError:
            if self.ready.is_set() or not self.stopping.is_set():
                raise
            _log.info("stopped", words="It was ended while it started.")
        except DrivefeedError as error:
            if self.ready.is_set() or not self.stopping.is_set():
                raise
            # The same Ctrl-C may end a part that was on its way up.
            _log.warning("ended_while_starting", error=str(error))

    async def _run(self) -> None:
        async with AsyncExitStack() as stack:
            await asyncio.to_thread(configure_tracing, outbound_of(self.parts.settings))
            stack.push_async_callback(asyncio.to_thread, stop_tracing)
            await serve_health(self.parts.settings, self.role, self.health, stack)
            queue = self._queue = await open_queue(self.parts, self.role, stack, owner=self.owner)
            indexing = await self._open_indexing(stack)
            files = await open_files(self.parts, self.role, indexing, stack)
            workers, relay, schedule = await self._assemble(queue, indexing, files)
            self.health.pulse = Pulse(
                self.parts.catalog, self.breakers, relay=relay, schedule=schedule, workers=workers
            )
            local, reindexing = open_door(self.parts, indexing, self.health, self._turns)
            errands = Errands(self.parts)
            page = await open_page(self.parts) if self.role.is_whole else None
            async with asyncio.TaskGroup() as group:
                background = [
                    group.create_task(self.loop_watch.run(), name="loop watch"),
                    group.create_task(relay.run(), name="relay"),
                    group.create_task(errands.follow_accounts(), name="accounts"),
                ]
                if self.role.schedules:
                    background += [
                        group.create_task(errands.connect(), name="connect"),
                        group.create_task(errands.use_idle_sign_ins(), name="idle sign-ins"),
                    ]
                if local is not None and reindexing is not None:
                    background += [
                        group.create_task(local.run(), name="local API"),
                        group.create_task(reindexing.run(), name="reindex"),
                    ]
                if self._ownership is not None:
                    background.append(group.create_task(self._ownership.keep(), name="index"))
                if page is not None:
                    background.append(group.create_task(page.run(), name="status page"))
                working = group.create_task(workers.run(), name="workers")
                schedule.start()
                spare_the_collector()
                self.ready.set()
                _log.info("ready", owner=self.owner, role=self.role.name)
                await self.stopping.wait()
                _log.info("stopping", grace_seconds=self.parts.settings.shutdown_seconds)
                schedule.stop()
                background[1].cancel()
                await workers.close(grace=self.parts.settings.shutdown_seconds)
                await working
                if local is not None:
                    await local.close()
                if page is not None:
                    await page.close()
                for task in background:
                    task.cancel()
            if self._runner is not None:
                await self._runner.at_rest(_HAND_BACK_SECONDS)
            with suppress(PartDown):  # the next start, or another process, frees our rows
                await heartbeats.leave(self.parts.catalog, self.owner)
        _log.info("stopped")

    async def _open_indexing(self, stack: AsyncExitStack) -> Indexing | None:
        """Make what does index jobs, in the process to which the index belongs."""
        if not self.role.indexes:
            return None
        if owns_embedded_index(self.parts.settings, self.role):
            self._ownership = IndexOwnership(self.parts.catalog, self.owner)
        else:
            self._ownership = self._turns = open_turns(self.parts, self.owner)
        if self._ownership is not None:
            await self._ownership.take()
            stack.push_async_callback(self._ownership.give_back)
        if words := await difference(self.parts.settings, self.parts.catalog):
            _log.warning("embedding_differs", words=words)
        return await open_indexing(self.parts, stack)

    async def _assemble(
        self, queue: BullmqQueue, indexing: Indexing | None, files: StoredFiles | None
    ) -> tuple[Workers, Relay, Schedule]:
        parts, settings = self.parts, self.parts.settings
        await heartbeats.beat(parts.catalog, self.owner, self.role.name)
        concurrency = concurrency_of(settings)
        self._runner = Runner(
            parts.catalog, self.breakers, owner=self.owner, pace_seconds=self._pace_seconds
        )
        gatekeeper = gatekeeper_of(parts.settings, parts.catalog)
        # Before anything is downloaded, it is known whether there is room.
        await gatekeeper.tick()
        workers = self._workers = Workers(
            queue,
            self._runner,
            [
                one
                for one in stages_of(parts, indexing, files=files, gate=lambda: gatekeeper.gate)
                if one.stage in self.role.stages
            ],
            concurrency=concurrency,
        )
        relay = Relay(
            parts.catalog,
            queue,
            windows=windows_of(concurrency),
            attempts=attempts_of(parts.settings),
            breakers=self.breakers,
            gate=lambda: gatekeeper.gate,
        )
        if is_alone(parts.settings, self.role):
            await relay.send_again_what_was_taken()
        schedule = Schedule(
            parts.catalog,
            relay,
            parts.store,
            owner=self.owner,
            role=self.role.name,
            is_whole=self.role.schedules,
            breakers=self.breakers,
        )
        if self.role.schedules:
            notices = notices_of(settings, parts.catalog, self.owner, self.breakers.open_parts)
            schedule.every(settings.watch.look_seconds, "notices", notices.tick)
            await keep_house(schedule, parts, queue, owner=self.owner)
        schedule.every(LOOK_SECONDS, "gate", gatekeeper.tick)
        schedule.every(_BACKENDS_SECONDS, "backends", parts.backends.look_again)
        watch_budgets(schedule, parts, tells=self.role.schedules)
        return workers, relay, schedule

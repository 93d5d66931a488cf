"""Workers: one consumer per queue, kept alive, closed in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from drivefeed.ports import DeliveryWorker, Queue, Stage
    from drivefeed.stages.runner import Runner
    from drivefeed.stages.stage import StageRun

_RESTART_SECONDS = 1.0

_log = log("workers")


class Workers:
    """Consumers for a set of stages."""

    def __init__(
        self,
        queue: Queue,
        runner: Runner,
        stages: Sequence[StageRun],
        *,
        concurrency: Mapping[Stage, int],
    ) -> None:
        self._queue = queue
        self._runner = runner
        self._stages = stages
        self._concurrency = concurrency
        self._open: dict[Stage, DeliveryWorker] = {}
        self._closing = False
        self._may_run = {one.stage: asyncio.Event() for one in stages}
        for event in self._may_run.values():
            event.set()

    async def run(self) -> None:
        """Consume until closed. A consumer whose loop ends by itself is started again."""
        async with asyncio.TaskGroup() as group:
            for stage in self._stages:
                group.create_task(self._keep(stage), name=f"worker {stage.stage}")

    async def pause(self, stages: Collection[Stage], *, grace: float) -> None:
        """Stop the consumers of some stages alone; what becomes due for them waits in the queue.

        Running jobs get ``grace`` seconds and are handed back then.
        """
        for stage in stages:
            self._may_run[stage].clear()
        await asyncio.gather(
            *(self._open[stage].close(grace=grace) for stage in stages if stage in self._open)
        )

    def resume(self) -> None:
        """Start all consumers again that were stopped."""
        for event in self._may_run.values():
            event.set()

    @property
    def paused(self) -> frozenset[Stage]:
        """The stages whose consumers are stopped."""
        return frozenset(stage for stage, event in self._may_run.items() if not event.is_set())

    @property
    def ended(self) -> frozenset[Stage]:
        """The stages that nobody works on although somebody should: a consumer ended by itself."""
        if self._closing:
            return frozenset()
        return frozenset(
            stage
            for stage, event in self._may_run.items()
            if event.is_set() and not (stage in self._open and self._open[stage].running)
        )

    async def _keep(self, stage: StageRun) -> None:
        run = self._runner.bind(stage)
        may_run = self._may_run[stage.stage]
        while True:
            await may_run.wait()
            if self._closing:
                return
            worker = self._queue.worker(
                stage.stage, run, concurrency=self._concurrency[stage.stage]
            )
            self._open[stage.stage] = worker
            try:
                await worker.run()
            except Exception as error:  # noqa: BLE001 - a tick or worker must not end the others
                _log.error("worker_ended", stage=stage.stage, error=str(error), exc_info=True)
            finally:
                del self._open[stage.stage]
            if may_run.is_set() and not self._closing:
                await asyncio.sleep(_RESTART_SECONDS)

    async def close(self, *, grace: float) -> None:
        """Take no more jobs; running ones get ``grace`` seconds and are handed back then."""
        self._closing = True
        self.resume()
        await asyncio.gather(*(worker.close(grace=grace) for worker in self._open.values()))

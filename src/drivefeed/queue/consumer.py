"""Our consumer of one queue: the DeliveryWorker port on :class:`~drivefeed.queue.loop.JobLoop`."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from bullmq.custom_errors import UnrecoverableError

from drivefeed.domain.errors import DrivefeedError
from drivefeed.queue.connection import worker_retry, worker_url
from drivefeed.queue.events import QueueEvent
from drivefeed.queue.faults import reason_of, words_of
from drivefeed.queue.loop import JobLoop
from drivefeed.queue.payload import check_payload
from drivefeed.queue.table import QUEUES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from drivefeed.ports import Delivery, Stage
    from drivefeed.queue.events import EventKind, Listener

_RESULT_CHARS = 4_000
_RETRY_START_S = 1.0


LOCK_MS = 30_000
"""After so long without a sign of life, a worker's job is another's."""
STALLED_MS = 15_000
"""How often it is looked for such jobs."""


class _ShowProgress(Protocol):
    async def __call__(self, stage: Stage, job_id: str, percent: int) -> None: ...


@dataclass(slots=True)
class BullmqDelivery:
    """Implements :class:`drivefeed.ports.Delivery`.

    ``attempt`` is greater than ``attempts`` where somebody retried a failed job on the board.
    """

    stage: Stage
    job_id: str
    payload: Mapping[str, Any]
    attempt: int
    attempts: int
    show: _ShowProgress

    async def progress(self, percent: int) -> None:
        """Show progress on the board; never raises, and gives up after a second."""
        with contextlib.suppress(Exception):
            await self.show(self.stage, self.job_id, min(max(int(percent), 0), 100))


class BullmqWorker:
    """Implements :class:`drivefeed.ports.DeliveryWorker`."""

    def __init__(
        self,
        stage: Stage,
        run: Callable[[Delivery], Awaitable[Any]],
        *,
        url: str,
        prefix: str,
        name: str,
        concurrency: int,
        fraction: Callable[[], float],
        on_event: Listener | None,
        progress: _ShowProgress,
    ) -> None:
        self._stage = stage
        self._url = url
        self._run = run
        self._fraction = fraction
        self._on_event = on_event
        self._progress = progress
        self._closing = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._loop = JobLoop(
            stage.value,
            self._deliver,
            {
                "connection": worker_url(url),
                "prefix": prefix,
                "name": name,
                "autorun": False,
                "concurrency": concurrency,
                # Nothing of ours waits for a limiter, and whatever is added wakes the worker: an
                # idle queue need not be asked each second.
                "drainDelay": 8,
                "lockDuration": LOCK_MS,
                "stalledInterval": STALLED_MS,
                # The stall check fails a job for good after this many crashes without asking us;
                # the catalog counts the starts and stops earlier.
                "maxStalledCount": 10,
                "runRetryDelay": 1_000,
                "metrics": {"maxDataPoints": 60 * 24 * 7},
                "settings": {"backoffStrategy": self._backoff},
            },
            retry=worker_retry(),
        )
        self._loop.on("failed", self._failed)
        self._loop.on("completed", lambda job, _: self._tell("completed", job))
        self._loop.on("stalled", lambda job_id: self._emit("stalled", job_id=str(job_id)))
        self._loop.on("cancelled", lambda job_id: self._emit("cancelled", job_id=str(job_id)))
        self._loop.on("error", self._fault)

    @property
    def running(self) -> bool:
        """False before :meth:`run` and once the consumer's loop ended, for whatever reason."""
        return self._task is not None and not self._task.done()

    async def run(self) -> None:
        """Consume until closed; waits for Redis as long as it is away.

        Raises:
            DrivefeedError: the loop ended although nobody closed it.
        """
        self._task = asyncio.create_task(self._consume(), name=f"queue-{self._stage.value}")
        try:
            # Waiting for the task and not in it: a cancellation must reach the jobs through
            # close(), which hands them back, and not through BullMQ's loop, which drops them.
            await asyncio.wait({self._task})
        finally:
            if not self._task.done():
                await self.close(grace=0)
        if self._closing.is_set():
            return
        error = None if self._task.cancelled() else self._task.exception()
        await self._loop.stop(grace=0)
        raise DrivefeedError(
            f"The worker of the queue {self._stage.value} ended by itself; restart the process "
            "and report this as a defect."
        ) from error

    async def _consume(self) -> None:
        while not self._closing.is_set():
            try:
                await self._loop.connect()
                break
            except Exception as error:  # noqa: BLE001  # whatever keeps Redis away, we wait for it
                self._fault(error)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), _RETRY_START_S)
        if not self._closing.is_set():
            await self._loop.run()

    async def close(self, *, grace: float) -> None:
        """Stop taking jobs, let the running ones finish for ``grace`` seconds, then let go.

        Jobs that did not finish are handed back without using an attempt, as far as Redis
        answers. Returns within about three seconds after the grace, whatever the state of Redis.
        """
        self._closing.set()
        await self._loop.stop(grace=grace)
        task = self._task
        if task is not None and not task.done():
            await asyncio.wait({task}, timeout=1.0)
            if not task.done():
                task.cancel()
                await asyncio.wait({task}, timeout=1.0)

    async def _deliver(self, job: Any, _token: str) -> Any:
        try:
            check_payload(self._stage, job.data if isinstance(job.data, dict) else {})
        except ValueError as error:
            raise UnrecoverableError(str(error)) from None
        delivery = BullmqDelivery(
            stage=self._stage,
            job_id=job.id,
            payload=job.data,
            attempt=job.attemptsMade + 1,
            attempts=max(int(job.opts.get("attempts") or 1), 1),
            show=self._progress,
        )
        self._tell("active", job)
        return _kept(await self._run(delivery))

    def _backoff(self, attempts_made: int, _type: str, _error: Any, _job: Any) -> int:
        # BullMQ calls this between two of its own steps: it must not wait and must not raise.
        try:
            fraction = self._fraction()
        except Exception:  # noqa: BLE001  # a broken source of randomness must not wedge the job
            fraction = 0.5
        return max(QUEUES[self._stage].backoff(attempts_made, fraction), 1)

    def _failed(self, job: Any, error: BaseException) -> None:
        self._tell("failed", job, reason_of(error))

    def _tell(self, kind: EventKind, job: Any, detail: str = "") -> None:
        attempt = job.attemptsMade + (1 if kind == "active" else 0)
        waited = None
        if kind == "active" and attempt == 1 and job.processedOn:
            waited = max(job.processedOn - job.timestamp - int(job.opts.get("delay") or 0), 0)
        self._emit(kind, job_id=job.id, attempt=attempt, waited_ms=waited, detail=detail)

    def _fault(self, error: BaseException, *_: Any) -> None:
        self._emit("error", detail=words_of(error, self._url))

    def _emit(self, kind: EventKind, **facts: Any) -> None:
        if self._on_event is not None:
            # BullMQ runs listeners inside the job: one that raises would break its completion.
            with contextlib.suppress(Exception):
                self._on_event(QueueEvent(kind=kind, stage=self._stage, **facts))


def _kept(result: Any) -> Any:
    """Return ``result`` as it may be kept on the job: BullMQ fails a job it can't encode."""
    try:
        text = json.dumps(result, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        return None
    return result if len(text) <= _RESULT_CHARS else None

"""BullMQ's worker with its dangerous edges covered.

What BullMQ for Python 3.4.4 does, found by running it, and what is done about it here:

- A ``CancelledError`` that leaves a job ends the worker's loop in silence and leaves the job
  active. Here a cancelled job is a failed attempt, unless the worker is stopping: then the job is
  handed back.
- A listener that raises breaks the completion of the job it is told about. Here listeners can't.
- ``close()`` waits for jobs and for Redis without an end, can't be cancelled, and spins if its
  inner task is. :meth:`JobLoop.stop` takes its place.
- The loop may end while jobs still run, and nobody renews their locks any more. ``stop`` does.
- Idle delays round up to whole seconds unless the version of the server was asked for first, and
  the workers list of the board finds only clients whose name it can decode. :meth:`JobLoop.connect`
  does both.
- Tracebacks are written to Redis as they are. Here they are bounded and without secrets.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from base64 import b64encode
from typing import TYPE_CHECKING, Any

from bullmq import Worker
from bullmq.custom_errors import DelayedError, UnrecoverableError, WaitingChildrenError

from drivefeed.queue.faults import reason_of, trace_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redis.asyncio.retry import Retry

_HAND_BACK_S = 1.0  # for one command, or for giving up
_RENEW_EVERY_S = 5.0
_KEPT_TRACES = 3
_BULLMQ_ERRORS = (DelayedError, WaitingChildrenError)


class JobCancelled(Exception):  # named for what happened
    """Somebody cancelled the task in which a job ran; the attempt failed."""


class _Fault(Exception):  # stands for whatever the job raised
    """What BullMQ is told of an error: one line without secrets."""


class JobLoop(Worker):  # type: ignore[misc]  # bullmq has no types
    """BullMQ's consumer of one queue. ``connect`` first, then ``run``, then ``stop``."""

    def __init__(
        self,
        name: str,
        deliver: Callable[[Any, str], Awaitable[Any]],
        opts: dict[str, Any],
        *,
        retry: Retry,
    ) -> None:
        super().__init__(name, self._guarded, opts)
        self._deliver = deliver
        self._client_name_set = False
        self._running_jobs: set[asyncio.Task[Any]] = set()
        encoded = b64encode(name.encode()).decode()
        who = "".join(c if "!" < c <= "~" else "-" for c in str(opts.get("name") or "drivefeed"))
        self.clientName = f"{self.prefix}:{encoded}:w:{who}"
        for connection in (self.redisConnection, self.blockingRedisConnection):
            connection.conn.set_retry(retry)

    async def connect(self) -> None:
        """Connect, learn the server's version and introduce ourselves.

        Raises:
            RedisError, OSError: Redis does not answer.
        """
        await self.blockingRedisConnection.getRedisVersion()
        await self._ensure_client_names()

    async def _ensure_client_names(self) -> None:
        # Only the blocking connection carries the name, so that the board counts us once.
        if not self._client_name_set:
            await self.blockingRedisConnection.set_client_name(self.clientName)
            self._client_name_set = True

    def emit(self, event_name: str, *args: Any, **kwargs: Any) -> None:
        """Tell listeners; what they raise is dropped, because they run inside the job."""
        for listener in self._callbacks.get(event_name, []):
            with contextlib.suppress(Exception):
                listener(*args, **kwargs)

    async def getNextJob(self, token: str) -> Any:  # noqa: N802  # BullMQ's name
        """Take the next job; none while stopping."""
        job = await super().getNextJob(token)
        if job is not None and self.closing:
            await self._hand_back(job, token)
            return None
        return job

    async def retryIfFailed(self, fn: Any, opts: Any = None) -> Any:  # noqa: N802  # BullMQ's name
        """Fetch the next job; a cancellation from outside fetches none and ends no loop."""
        try:
            return await super().retryIfFailed(fn, opts)
        except asyncio.CancelledError:
            if self.closing:
                raise
            _uncancel()
            return None

    async def processJob(self, job: Any, token: str) -> None:  # noqa: N802  # BullMQ's name
        """Run one job. A cancellation outside of its own code leaves it to the stall check."""
        task = asyncio.current_task()
        assert task is not None  # coroutines run in tasks
        self._running_jobs.add(task)
        try:
            await super().processJob(job, token)
        except asyncio.CancelledError:
            _uncancel()
            self.emit("cancelled", job.id)
        finally:
            self._running_jobs.discard(task)

    async def _guarded(self, job: Any, token: str) -> Any:
        try:
            return await self._deliver(job, token)
        except asyncio.CancelledError:
            _uncancel()
            if self.closing:
                await self._hand_back(job, token)
                raise DelayedError from None
            self.emit("cancelled", job.id)
            error: BaseException = JobCancelled("The job was cancelled while it ran.")
        except _BULLMQ_ERRORS:
            raise
        except Exception as raised:  # noqa: BLE001  # the job's code may raise anything
            error = raised
        _keep_trace(job, trace_of(error))
        if isinstance(error, UnrecoverableError):
            raise UnrecoverableError(reason_of(error)) from None
        raise _Fault(reason_of(error)) from None

    async def _hand_back(self, job: Any, token: str) -> None:
        """Put an active job back as due now, without using an attempt, if Redis answers."""
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_HAND_BACK_S):
                await job.moveToDelayed(0, token)

    async def stop(self, *, grace: float) -> None:
        """Take no more jobs, let those that run finish for ``grace`` seconds, then let go.

        Ends about two seconds after the grace at the latest.
        """
        self.closing = True
        self.paused = False
        self.resume_event.set()
        if self.waiting is not None:
            self.waiting.cancel()
        # Even without a grace a fetch gets a moment: a job it was just given must be handed back.
        await self._drain(time.monotonic() + max(grace, 0.3))
        # Cancelled jobs hand themselves back (see _guarded); this needs Redis for a moment.
        self.cancelProcessing()
        leftovers = {task for task in self.processing if not task.done()}
        if leftovers:
            await asyncio.wait(leftovers, timeout=_HAND_BACK_S + 0.2)
        self.forceClosing = True
        self.closed = True
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_HAND_BACK_S):
                await self.lockManager.close()
                await self.backend.close(force=True)

    async def _drain(self, deadline: float) -> None:
        fetch_deadline = min(deadline, time.monotonic() + 1.0)
        renewed = time.monotonic()
        while True:
            now = time.monotonic()
            jobs = {task for task in self._running_jobs if not task.done()}
            fetches = {t for t in self.processing if not t.done()} - jobs
            pending = jobs if now >= fetch_deadline else jobs | fetches
            if not pending or now >= deadline:
                return
            until = min(deadline, renewed + _RENEW_EVERY_S)
            if fetches and now < fetch_deadline:
                until = min(until, fetch_deadline)
            await asyncio.wait(
                pending, timeout=max(until - now, 0.01), return_when=asyncio.FIRST_COMPLETED
            )
            if time.monotonic() - renewed >= _RENEW_EVERY_S:
                renewed = time.monotonic()
                await self._renew_locks(deadline - renewed)

    async def _renew_locks(self, seconds: float) -> None:
        held = list(self.jobs)
        with contextlib.suppress(Exception):
            async with asyncio.timeout(max(min(seconds, _HAND_BACK_S), 0.01)):
                await self.backend.extendLocks(
                    [job.id for job, _ in held],
                    [token for _, token in held],
                    self.opts["lockDuration"],
                )


def _uncancel() -> None:
    """Take back a cancellation that was dealt with, so that timeouts in this task still work."""
    task = asyncio.current_task()
    while task is not None and task.cancelling():
        task.uncancel()


def _keep_trace(job: Any, text: str) -> None:
    def update() -> None:
        job.stacktrace = [*job.stacktrace, text][-_KEPT_TRACES:]

    # BullMQ would write the traceback with its source lines, as it is, at every attempt.
    job.updateStacktrace = update

"""The Queue port on BullMQ, so that every tool that reads BullMQ's queues can read ours.

All of BullMQ's quirks stay in this room. Producers have a client of their own that answers or
fails within five seconds; workers wait for Redis as long as it takes. A job's id is deterministic,
because a lost reply makes the client send the same command again, and because the id of a job
that is still kept swallows a new job silently: whoever wants a job to run again gives it the next
number.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from bullmq import Queue as ProducerQueue

from drivefeed.queue.connection import answering, producer_client
from drivefeed.queue.consumer import BullmqWorker
from drivefeed.queue.health import faults_in, warnings_in
from drivefeed.queue.payload import check_job_id, check_payload
from drivefeed.queue.table import QUEUES

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from drivefeed.ports import Delivery, DeliveryWorker, Ids, JobSpec, Stage
    from drivefeed.queue.events import Listener

_BULK = 250  # jobs in one round trip: about 30 ms of encoding, which the event loop can bear
_CLOSE_WITHIN = 2.0
_CLEAR_WITHIN = 60.0
_CLEARED = 1_000
_COUNTED = ("wait", "prioritized", "active", "delayed", "completed", "failed", "paused")
BACKOFF_TYPE = "drivefeed"
"""The name of our backoff in a job's options; only our workers know it."""


class BullmqQueue:
    """Implements :class:`drivefeed.ports.Queue` on Redis ≥ 6.2 or Valkey.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``; may carry redis-py's options as a query.
        prefix: keeps our keys apart from others in a shared Redis; the board needs the same.
        name: what our workers are called on the board, for example host and process id.
        ids: source of randomness for the jitter of backoffs.
        on_event: is told of jobs and faults for metrics and logs. What it raises is dropped,
            because BullMQ runs listeners inside the job.

    Raises:
        ValueError: ``url`` is no Redis URL or ``prefix`` is not usable as one.
    """

    def __init__(
        self, url: str, *, prefix: str, name: str, ids: Ids, on_event: Listener | None = None
    ) -> None:
        if not prefix or any(c in prefix for c in " {}"):
            raise ValueError("The queue prefix must not be empty or hold spaces or braces.")
        self._url = url
        self._prefix = prefix
        self._name = name
        self._ids = ids
        self._on_event = on_event
        self._client = producer_client(url)
        self._sentinel = f"{prefix}:drivefeed:sentinel"
        self._producers: dict[Stage, Any] = {}

    def _producer(self, stage: Stage) -> Any:
        if stage not in self._producers:
            opts = {"connection": self._client, "prefix": self._prefix}
            self._producers[stage] = ProducerQueue(stage.value, opts)
        return self._producers[stage]

    async def add(self, jobs: Sequence[JobSpec]) -> None:
        """Add jobs in one round trip per stage; see :meth:`drivefeed.ports.Queue.add`.

        A round trip carries at most 250 jobs.

        Raises:
            PartDown: Redis does not answer or refuses; some of the jobs may have been added.
            ValueError: a payload carries more than ids, or an id is malformed; nothing was added.
        """
        by_stage: dict[Stage, list[dict[str, Any]]] = {}
        for job in jobs:
            by_stage.setdefault(job.stage, []).append(_bullmq_job(job))
        async with answering(self._url):
            for stage, group in by_stage.items():
                producer = self._producer(stage)
                for start in range(0, len(group), _BULK):
                    await producer.addBulk(group[start : start + _BULK])

    async def pending(self, stage: Stage, job_ids: Sequence[str]) -> set[str]:
        """Return those of the ids whose jobs wait, are delayed or are being done."""
        base = f"{self._prefix}:{stage.value}"
        async with answering(self._url):
            pipe = self._client.pipeline(transaction=False)
            for job_id in job_ids:
                pipe.exists(f"{base}:{job_id}")
                pipe.zscore(f"{base}:completed", job_id)
                pipe.zscore(f"{base}:failed", job_id)
            answers = await pipe.execute()
        return {
            job_id
            for job_id, there, completed, failed in zip(
                job_ids, answers[::3], answers[1::3], answers[2::3], strict=True
            )
            if there and completed is None and failed is None
        }

    async def active(self, stage: Stage) -> set[str]:
        """Return the ids of the jobs that workers took and did not end, dead workers' too."""
        async with answering(self._url):
            found = await self._client.lrange(f"{self._prefix}:{stage.value}:active", 0, -1)
        return {str(job_id) for job_id in found}

    async def counts(self, stage: Stage) -> dict[str, int]:
        """Return how many jobs are waiting, active, delayed, completed, failed and paused."""
        async with answering(self._url):
            found = await self._producer(stage).getJobCounts(*_COUNTED)
        found["waiting"] = found.pop("wait") + found.pop("prioritized")
        return {key: int(found[key]) for key in sorted(found)}

    async def generation(self) -> str | None:
        """Return the sentinel's value, or None where Redis was emptied since it was set."""
        async with answering(self._url):
            value = await self._client.get(self._sentinel)
        return None if value is None else str(value)

    async def clear(self) -> None:
        """Remove every key of our prefix, a thousand at a time; no worker may be at work."""
        pattern = "".join(f"[{c}]" if c in "*?[" else c for c in self._prefix) + ":*"
        keys: list[Any] = []
        async with answering(self._url, _CLEAR_WITHIN):
            async for key in self._client.scan_iter(pattern, count=_CLEARED):
                keys.append(key)
                if len(keys) == _CLEARED:
                    await self._client.unlink(*keys)
                    keys = []
            if keys:
                await self._client.unlink(*keys)

    async def set_generation(self, value: str) -> None:
        """Set the sentinel that tells when Redis was emptied."""
        async with answering(self._url):
            await self._client.set(self._sentinel, value)

    def worker(
        self, stage: Stage, run: Callable[[Delivery], Awaitable[Any]], *, concurrency: int
    ) -> DeliveryWorker:
        """Make a consumer of one queue.

        Whatever ``run`` raises counts as a failed attempt and is tried again after the backoff of
        the queue's table, until the job's attempts are used up. What it returns is kept on the
        job if it is small and can be written as JSON.
        """
        return BullmqWorker(
            stage,
            run,
            url=self._url,
            prefix=self._prefix,
            name=self._name,
            concurrency=concurrency,
            fraction=self._ids.fraction,
            on_event=self._on_event,
            progress=self._progress,
        )

    async def _progress(self, stage: Stage, job_id: str, percent: int) -> None:
        # Through the producers' client: the worker's connection may be retrying for minutes.
        async with answering(self._url, 1.0):
            await self._producer(stage).backend.updateProgress(job_id, percent)

    async def check(self) -> None:
        """Check that Redis answers, is recent enough, does not evict keys and can write.

        Raises:
            PartDown: with a sentence that says what is wrong.
        """
        async with answering(self._url):
            faults = await faults_in(self._client, self._url)
        if faults is not None:
            raise faults

    async def warnings(self) -> list[str]:
        """Return a sentence for each setting of Redis that is risky but that we can live with.

        Raises:
            PartDown: Redis does not answer.
        """
        async with answering(self._url):
            return await warnings_in(self._client, self._url)

    async def aclose(self) -> None:
        """Close the producers' connections within two seconds, whatever the state of Redis."""
        try:
            async with asyncio.timeout(_CLOSE_WITHIN):
                await self._client.aclose(close_connection_pool=True)
        except (OSError, TimeoutError):
            pass  # the connections are gone, which is what was asked for


def _bullmq_job(job: JobSpec) -> dict[str, Any]:
    check_job_id(job.stage, job.job_id)
    check_payload(job.stage, job.payload)
    if job.delay_ms < 0 or job.attempts < 1 or job.priority < 0:
        raise ValueError(
            f"The job {job.job_id} needs a delay and a priority of at least 0 and an attempt."
        )
    spec = QUEUES[job.stage]
    return {
        "name": job.stage.value,
        "data": dict(job.payload),
        "opts": {
            "jobId": job.job_id,
            # No timestamp of ours: BullMQ sets an integer, and a float would wedge the job.
            "delay": int(job.delay_ms),
            "attempts": int(job.attempts),
            "priority": int(job.priority),
            "backoff": {"type": BACKOFF_TYPE, "delay": int(spec.backoff_seconds * 1000)},
            "removeOnComplete": {
                "count": spec.keep_completed.count,
                "age": spec.keep_completed.age_s,
            },
            "removeOnFail": {"count": spec.keep_failed.count, "age": spec.keep_failed.age_s},
        },
    }

"""The queue: one for each stage, its jobs and their delivery."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence


class Stage(StrEnum):
    """One queue each; the name of a stage is the name of its queue."""

    DISCOVER = "discover"
    ADMIT = "admit"
    TRANSFER = "transfer"
    SUBMIT = "submit"
    POLL = "poll"
    PUBLISH = "publish"
    WITHDRAW = "withdraw"
    INDEX = "index"


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A delivery to make. The payload holds ids and a schema version, nothing else.

    Attributes:
        job_id: ``stage-subject-number``; Node refuses ids with a colon.
        delay_ms: how long it waits in Redis as a delayed job; 0 for at once.
        attempts: attempts BullMQ may use for faults of the file.
        priority: 0 is the most urgent.
    """

    stage: Stage
    job_id: str
    payload: Mapping[str, str | int]
    delay_ms: int = 0
    attempts: int = 3
    priority: int = 0


class Delivery(Protocol):
    """One job as a worker received it."""

    stage: Stage
    job_id: str
    payload: Mapping[str, Any]
    attempt: int
    """1 for the first attempt."""
    attempts: int
    """How many attempts it has in all."""

    async def progress(self, percent: int) -> None:
        """Show progress on the board; never raises."""
        ...


class DeliveryWorker(Protocol):
    """A consumer of one queue."""

    @property
    def running(self) -> bool:
        """False once the consumer's loop ended, for whatever reason."""
        ...

    async def run(self) -> None:
        """Consume until closed; returns then, and raises if the loop ended by itself."""
        ...

    async def close(self, *, grace: float) -> None:
        """Stop taking jobs, let the running ones finish for ``grace`` seconds, then let go."""
        ...


class Queue(Protocol):
    """Delivers jobs to workers; disposable, the catalog remembers."""

    async def add(self, jobs: Sequence[JobSpec]) -> None:
        """Add jobs in one round trip per stage; an id that is already there is left as it is.

        Raises:
            PartDown: the queue does not answer within five seconds; nothing may have been added.
        """
        ...

    async def pending(self, stage: Stage, job_ids: Sequence[str]) -> set[str]:
        """Return those of the ids whose jobs are still to be done or being done."""
        ...

    async def active(self, stage: Stage) -> set[str]:
        """Return the ids of the jobs that workers took and did not end, dead workers' too."""
        ...

    async def counts(self, stage: Stage) -> dict[str, int]:
        """Return how many jobs are waiting, active, delayed, completed, failed and paused."""
        ...

    async def generation(self) -> str | None:
        """Return the sentinel's value, or None where Redis was emptied since it was set."""
        ...

    async def clear(self) -> None:
        """Remove every job and everything else of ours, the sentinel too; for nobody else.

        Raises:
            PartDown: the queue does not answer.
        """
        ...

    async def set_generation(self, value: str) -> None:
        """Set the sentinel that tells when Redis was emptied."""
        ...

    def worker(
        self, stage: Stage, run: Callable[[Delivery], Awaitable[Any]], *, concurrency: int
    ) -> DeliveryWorker:
        """Make a consumer of one queue; ``run``'s return value is kept on the job."""
        ...

    async def check(self) -> None:
        """Check that the queue answers.

        Raises:
            PartDown: with a sentence that says what is wrong.
        """
        ...

    async def aclose(self) -> None:
        """Close connections within a few seconds, whatever the state of Redis."""
        ...

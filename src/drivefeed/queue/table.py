"""The one table of queues. The documentation and Bull Board's descriptions are made from it.

Concurrency is a limit per worker process. Attempts are for faults of the file; waiting for a part
that is down uses none. Ended jobs are kept for the board only: the catalog remembers, Redis
reminds.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from drivefeed.domain.retry import backoff_ms
from drivefeed.ports import Stage

_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Keep:
    """How many ended jobs stay for the board, and for how many seconds; whichever is less."""

    count: int
    age_s: int


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """What there is to know about one queue.

    Attributes:
        purpose: one sentence for people who look at the board.
        concurrency: how many jobs one worker process runs at a time.
        attempts: how often a job is tried before it counts as failed.
        backoff_seconds: the wait after the first failed attempt; it doubles with each one.
        backoff_max: the longest wait in seconds.
    """

    stage: Stage
    purpose: str
    concurrency: int
    attempts: int
    backoff_seconds: float
    backoff_max: float
    keep_completed: Keep = Keep(count=5_000, age_s=_DAY)
    keep_failed: Keep = Keep(count=10_000, age_s=14 * _DAY)

    def backoff(self, attempt: int, fraction: float) -> int:
        """Return how many milliseconds to wait after the failed attempt number ``attempt``.

        See :func:`drivefeed.domain.retry.backoff_ms`; ``fraction`` is random in [0, 1).
        """
        return backoff_ms(
            attempt,
            fraction=fraction,
            first_ms=round(1000 * self.backoff_seconds),
            longest_ms=round(1000 * self.backoff_max),
        )


_SPECS = (
    QueueSpec(
        Stage.DISCOVER,
        "Reads pages of changes of one drive and records what they mean.",
        concurrency=2,
        attempts=5,
        backoff_seconds=2,
        backoff_max=120,
    ),
    QueueSpec(
        Stage.ADMIT,
        "Walks a connected folder after it was connected or its filter changed, and decides for "
        "each file whether it is wanted.",
        concurrency=1,
        attempts=5,
        backoff_seconds=2,
        backoff_max=120,
    ),
    QueueSpec(
        Stage.TRANSFER,
        "Copies one version of a file from the drive to the object store (the S3 upload).",
        concurrency=4,
        attempts=5,
        backoff_seconds=2,
        backoff_max=300,
    ),
    QueueSpec(
        Stage.SUBMIT,
        "Hands a stored file to the ingestion backend, once.",
        concurrency=2,
        attempts=4,
        backoff_seconds=2,
        backoff_max=120,
    ),
    QueueSpec(
        Stage.POLL,
        "Asks the ingestion backend once how a file stands, and settles the usage when it is done.",
        concurrency=2,
        attempts=4,
        backoff_seconds=2,
        backoff_max=120,
    ),
    QueueSpec(
        Stage.PUBLISH,
        "Makes the wanted version of a document the one that search finds, or hides a removed one.",
        concurrency=2,
        attempts=5,
        backoff_seconds=1,
        backoff_max=60,
    ),
    QueueSpec(
        Stage.WITHDRAW,
        "Removes what an ended import left in the index and in the object store.",
        concurrency=2,
        attempts=5,
        backoff_seconds=2,
        backoff_max=300,
    ),
    QueueSpec(
        Stage.INDEX,
        "Extracts, chunks and embeds one file in the embedded ingestion backend.",
        # While one file takes minutes, the others pass by it.
        concurrency=2,
        attempts=3,
        backoff_seconds=5,
        backoff_max=120,
    ),
)

QUEUES: dict[Stage, QueueSpec] = {spec.stage: spec for spec in _SPECS}
"""All queues by stage, in the order in which a file passes them."""


def queues_json(prefix: str) -> dict[str, Any]:
    """Describe all queues for programs that are not written in Python, such as Bull Board.

    Returns:
        ``{"schema": 1, "prefix": ..., "queues": [{"name", "purpose", "concurrency", "attempts",
        "backoff", "keep_completed", "keep_failed"}, ...]}``. ``backoff`` holds seconds, ``keep_*``
        a count and an age in seconds.
    """
    return {
        "schema": 1,
        "prefix": prefix,
        "queues": [
            {
                "name": spec.stage.value,
                "purpose": spec.purpose,
                "concurrency": spec.concurrency,
                "attempts": spec.attempts,
                "backoff": {"first_s": spec.backoff_seconds, "max_s": spec.backoff_max},
                "keep_completed": asdict(spec.keep_completed),
                "keep_failed": asdict(spec.keep_failed),
            }
            for spec in QUEUES.values()
        ],
    }


def payload_schema(stage: Stage) -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of the payloads of ``stage``; see :mod:`.payload`."""
    from drivefeed.queue.payload import schema

    return schema(stage)

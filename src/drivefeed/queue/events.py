"""What the queue tells about jobs, for metrics and logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.ports import Stage

EventKind = Literal["active", "completed", "failed", "stalled", "cancelled", "error"]


@dataclass(frozen=True, slots=True)
class QueueEvent:
    """Something happened to a job or to a worker.

    Attributes:
        kind: ``error`` is a fault of a worker (Redis does not answer, a lock was lost); the
            others are about the job ``job_id``.
        attempt: the attempt it is about, 1 for the first; 0 where there is none.
        waited_ms: for ``active``: how long the job was ready before a worker took it.
        detail: a sentence without secrets.
    """

    kind: EventKind
    stage: Stage
    job_id: str | None = None
    attempt: int = 0
    waited_ms: int | None = None
    detail: str = ""


if TYPE_CHECKING:
    Listener = Callable[[QueueEvent], None]

"""What adapters may raise. Everything else is a defect.

Adapters translate the errors of their libraries at the door, so that outside of them there are
only these::

    DrivefeedError
    ├── Transient        try the same step again soon (an attempt is used)
    │   └── InUse        somebody has the file locked: try again much later (none is used)
    ├── Throttled        wait as long as told (no attempt is used)
    ├── PartDown         a part (store, backend, index, source) is down; its breaker opens
    ├── Permanent        this file cannot be imported, for a reason of the closed list
    ├── NeedsAttention   a person has to repair something, for a reason of the closed list
    ├── CursorExpired    the delta link is no longer valid; a full enumeration is needed
    ├── AlreadyExists    a conditional write found an object under the key
    └── NotFound         the thing asked for is not there
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drivefeed.domain.reasons import Reason


class Part(StrEnum):
    """The parts outside our process that can be down, each with a breaker of its own."""

    SOURCE = "source"
    STORE = "store"
    BACKEND = "backend"
    INDEX = "index"
    QUEUE = "queue"
    CATALOG = "catalog"


class DrivefeedError(Exception):
    """Base of all errors that drivefeed raises on purpose; the message is for a person."""


class Transient(DrivefeedError):
    """A fault that may pass: the same step is tried again after a backoff."""


class InUse(Transient):
    """Somebody has the file locked or checked out, and the source gives it to nobody else."""


class Throttled(DrivefeedError):
    """The other side asked to wait ``seconds`` before the next request."""

    def __init__(self, message: str, *, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class PartDown(DrivefeedError):
    """``part`` does not answer, so it is no fault of the file that was being worked on.

    Where there are several of a part, the adapter has a breaker for each: ``wait_ms`` is then how
    long this one is considered down, and the others of the part go on.
    """

    def __init__(self, message: str, *, part: Part, wait_ms: int | None = None) -> None:
        super().__init__(message)
        self.part = part
        self.wait_ms = wait_ms


class Permanent(DrivefeedError):
    """This version of the file cannot be imported; ``reason`` says why."""

    def __init__(self, message: str, *, reason: Reason) -> None:
        super().__init__(message)
        self.reason = reason


class NeedsAttention(DrivefeedError):
    """A person has to decide or repair; ``reason`` says what."""

    def __init__(self, message: str, *, reason: Reason) -> None:
        super().__init__(message)
        self.reason = reason


class CursorExpired(DrivefeedError):
    """The service no longer accepts the delta link (HTTP 410): start a new generation."""


class AlreadyExists(DrivefeedError):
    """A conditional write found another object under the same key."""


class NotFound(DrivefeedError):
    """The object, item or job asked for does not exist."""

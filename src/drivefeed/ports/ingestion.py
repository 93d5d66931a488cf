"""Ingestion backends: what is submitted to them, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.domain.reasons import Reason


@dataclass(frozen=True, slots=True)
class Submission:
    """What we hand to an ingestion backend.

    Attributes:
        key: the idempotency key, ``import_id:round``.
        seq: rises whenever the document's wanted version changes; a backend never publishes a
            lower one over a higher one.
        object_key: where the bytes are in the object store.
        folders: ids of the connection roots and ancestor folders the document lies in.
    """

    key: str
    org_id: str
    document_id: str
    import_id: str
    round: int
    seq: int
    object_key: str
    size: int
    name: str
    media_type: str | None
    source: str = "drive"
    folders: tuple[str, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)


class BackendState(StrEnum):
    """Where a backend job stands."""

    WORKING = "working"
    DONE = "done"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BackendStatus:
    """A backend's answer to a poll.

    Attributes:
        progress: percent.
        pages, chunks: set when it is done.
        again_after_ms: when to ask again, where the backend knows better than we do.
        live: whether what the job brought in is shown now. A job that ends when a higher seq of
            its document was submitted leaves it hidden until it is told otherwise.
    """

    state: BackendState
    progress: int = 0
    again_after_ms: int | None = None
    pages: int | None = None
    chunks: int | None = None
    reason: Reason | None = None
    detail: str = ""
    live: bool = True


class IngestionBackend(Protocol):
    """Makes documents searchable. Ours is one; any team can put theirs behind the contract."""

    @property
    def trouble(self) -> str:
        """What it suffers from, where it has a breaker of its own that is open; else empty."""
        ...

    async def look_again(self) -> None:
        """See whether one that is down is well again, where nothing else would ask it."""
        ...

    async def submit(self, submission: Submission) -> str:
        """Submit and return the backend's job id; the same key gives the same job.

        Raises:
            Permanent: the backend refuses the file at the door.
            Throttled, Transient, PartDown: as their docstrings say.
        """
        ...

    async def status(self, job_id: str) -> BackendStatus:
        """Ask once how a job stands; an unknown id gives ``UNKNOWN``."""
        ...

    async def find(self, key: str) -> str | None:
        """Return the job id for an idempotency key, or None if the backend never saw it."""
        ...

    async def cancel(self, job_id: str) -> bool:
        """Try to cancel; True if the job will not finish and nothing of it will be published.

        False for a job that goes on, and for one that is done already.
        """
        ...

    async def remove(self, *, document_id: str, import_id: str, round_: int) -> None:
        """Remove everything of one round of an import; fine if there is nothing."""
        ...

    async def set_live(self, *, document_id: str, import_id: str, round_: int, live: bool) -> None:
        """Show or hide what one round of an import brought into the index."""
        ...

    async def set_folders(self, *, document_id: str, name: str, folders: tuple[str, ...]) -> None:
        """Record where the document lies now and what it is called; no content is read again."""
        ...

    async def check(self) -> None:
        """Check that the backend answers.

        Raises:
            PartDown: with a sentence that says what is wrong.
        """
        ...

    async def aclose(self) -> None:
        """Release connections, threads and child processes."""
        ...

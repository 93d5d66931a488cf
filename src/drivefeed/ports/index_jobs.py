"""The jobs of the embedded ingestion backend, as they are kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from drivefeed.domain.reasons import Reason
    from drivefeed.ports.ingestion import Submission


class IndexJobState(StrEnum):
    """Where a job of the embedded backend stands."""

    QUEUED = "queued"
    DONE = "done"
    REFUSED = "refused"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class IndexJob:
    """A job of the embedded backend, as it is remembered.

    Attributes:
        read_at_start: the last start at which its file was read without harm, as far as that was
            recorded; 0 before.
    """

    job_id: str
    submission: Submission
    state: IndexJobState
    progress: int = 0
    pages: int | None = None
    chunks: int | None = None
    reason: Reason | None = None
    detail: str = ""
    shown: bool = True
    read_at_start: int = 0


class IndexJobs(Protocol):
    """Remembers the embedded backend's jobs across restarts."""

    async def create(self, submission: Submission) -> IndexJob:
        """Remember a job and make its ``index`` stage due; the same key gives the same job."""
        ...

    async def get(self, job_id: str) -> IndexJob | None:
        """Return a job, or None."""
        ...

    async def find(self, key: str) -> IndexJob | None:
        """Return the job of an idempotency key, or None."""
        ...

    async def set_progress(self, job_id: str, percent: int) -> None:
        """Record progress; ignored unless the job is queued, and had come less far."""
        ...

    async def note_read(self, job_id: str, starts: int) -> None:
        """Record that the file was read without harm at the start of that number."""
        ...

    async def is_overtaken(self, job: IndexJob) -> bool:
        """Tell whether a higher seq of the job's document was submitted."""
        ...

    async def set_shown(self, key: str, *, shown: bool) -> None:
        """Record whether what the job of a key brought in is shown; fine if there is none."""
        ...

    async def finish(
        self,
        job_id: str,
        state: IndexJobState,
        *,
        pages: int | None = None,
        chunks: int | None = None,
        reason: Reason | None = None,
        detail: str = "",
        shown: bool = True,
    ) -> bool:
        """End a queued job and make the poll of its import due now; False if it had ended."""
        ...

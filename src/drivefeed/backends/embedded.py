"""The embedded ingestion backend, behind the same port as any other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.identity import idempotency_key
from drivefeed.ports import BackendState, BackendStatus, IndexJobState

if TYPE_CHECKING:
    from drivefeed.ports import IndexJobs, Submission, VectorIndex

_POLL_AGAIN_MS = 60_000

_STATES = {
    IndexJobState.QUEUED: BackendState.WORKING,
    IndexJobState.DONE: BackendState.DONE,
    IndexJobState.REFUSED: BackendState.REFUSED,
    IndexJobState.CANCELLED: BackendState.CANCELLED,
}


class EmbeddedBackend:
    """Remembers jobs in the catalog; the ``index`` stage does them."""

    def __init__(self, jobs: IndexJobs, index: VectorIndex) -> None:
        self._jobs = jobs
        self._index = index

    @property
    def trouble(self) -> str:
        """Nothing of its own: the index behind it has the breaker of its part."""
        return ""

    async def look_again(self) -> None:
        """Nothing to ask."""

    async def submit(self, submission: Submission) -> str:
        """Remember the job; the same key gives the same job."""
        return (await self._jobs.create(submission)).job_id

    async def status(self, job_id: str) -> BackendStatus:
        """Tell how a job stands; an unknown id gives ``UNKNOWN``."""
        job = await self._jobs.get(job_id)
        if job is None:
            return BackendStatus(BackendState.UNKNOWN)
        return BackendStatus(
            _STATES[job.state],
            progress=job.progress,
            # A job that ends makes its poll due at once, so asking often would only cost.
            again_after_ms=_POLL_AGAIN_MS,
            pages=job.pages,
            chunks=job.chunks,
            reason=job.reason,
            detail=job.detail,
            live=job.state is IndexJobState.DONE and job.shown,
        )

    async def find(self, key: str) -> str | None:
        """Return the job for an idempotency key, or None."""
        job = await self._jobs.find(key)
        return job.job_id if job is not None else None

    async def cancel(self, job_id: str) -> bool:
        """End a queued job; True unless it was done before."""
        if await self._jobs.finish(job_id, IndexJobState.CANCELLED):
            return True
        job = await self._jobs.get(job_id)
        return job is None or job.state is not IndexJobState.DONE

    async def remove(self, *, document_id: str, import_id: str, round_: int) -> None:
        """Remove all points of a round."""
        del document_id
        await self._index.remove(import_id=import_id, round_=round_)
        await self._jobs.set_shown(idempotency_key(import_id, round_), shown=False)

    async def set_live(self, *, document_id: str, import_id: str, round_: int, live: bool) -> None:
        """Set the live flag on the points of a round."""
        del document_id
        await self._index.set_live(import_id=import_id, round_=round_, live=live)
        await self._jobs.set_shown(idempotency_key(import_id, round_), shown=live)

    async def set_folders(self, *, document_id: str, name: str, folders: tuple[str, ...]) -> None:
        """Update name and folders on the points of a document."""
        await self._index.set_folders(document_id=document_id, name=name, folders=folders)

    async def check(self) -> None:
        """Check that the index answers; raises PartDown where it does not."""
        await self._index.check()

    async def aclose(self) -> None:
        """The index and the extraction pool are closed by who opened them."""

"""Poll: ask the ingestion backend once how its job stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import Part
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.reasons import Reason
from drivefeed.domain.retry import poll_interval_ms
from drivefeed.ports import BackendState, BackendStatus, Stage
from drivefeed.stages.imports import ImportStage, Task
from drivefeed.stages.outcome import Advance, Again, Ask, Outcome

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.stages.backends import Backends

_LATE_AGAIN_MS = 5 * 60_000


class Poll(ImportStage):
    """Never holds a slot while the backend works: asking again later is a commit."""

    stage = Stage.POLL
    parts = (Part.BACKEND,)

    def __init__(self, catalog: Catalog, backends: Backends) -> None:
        super().__init__(catalog, usage_owner=backends.usage_owner)
        self._backends = backends

    async def work(self, task: Task) -> Outcome | None:
        """Ask once and say what follows."""
        one = task.one
        if one.state is not State.SUBMITTED or one.backend_job is None:
            return None
        with passing(self.checkpoint, "poll"):
            status = await self._backends.named(one.backend).status(one.backend_job)
        match status.state:
            case BackendState.DONE:
                facts = {"pages": status.pages or 0, "chunks": status.chunks, "shown": status.live}
                return Advance(
                    Event.SETTLED,
                    facts,
                    detail=f"pages: {status.pages}, chunks in the index: {status.chunks}",
                    usage_owner=self.usage_owner(task),
                )
            case BackendState.REFUSED:
                return Advance(
                    Event.REFUSED,
                    reason=status.reason or Reason.BACKEND_REFUSED,
                    detail=status.detail,
                )
            case BackendState.CANCELLED:
                return self._cancelled(task)
            case BackendState.UNKNOWN:
                # The backend forgot the job; it is submitted again under the same key.
                return Advance(
                    Event.ACCEPTED,
                    {"backend_job": None},
                    detail=f"the backend does not know job {one.backend_job}",
                )
            case _:
                return await self._working(task, one.backend_job, status)

    async def _working(self, task: Task, job_id: str, status: BackendStatus) -> Outcome:
        if not task.is_wanted:
            with passing(self.checkpoint, "poll.cancel"):
                cancelled = await self._backends.named(task.one.backend).cancel(job_id)
            if cancelled:
                return self._cancelled(task)
        await task.delivery.progress(status.progress)
        one = task.one
        wait = status.again_after_ms or poll_interval_ms(one.poll_count)
        if one.deadline_at is None:
            return Again(wait, polled=True)
        left = one.deadline_at - self.catalog.clock.now()
        if left > 0:
            return Again(min(wait, left), polled=True)
        if one.attention is Reason.BACKEND_LATE:
            return Again(_LATE_AGAIN_MS, polled=True)
        return Ask(
            Reason.BACKEND_LATE,
            f"Backend job {job_id} for '{task.file.name}' is past its deadline.",
            again_after_ms=_LATE_AGAIN_MS,
        )

    def _cancelled(self, task: Task) -> Outcome:
        reason = task.document.unwanted_reason or Reason.SUPERSEDED
        return Advance(Event.CANCELLED, reason=reason, detail="the backend job was cancelled")

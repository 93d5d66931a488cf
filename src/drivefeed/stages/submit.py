"""Submit: hand a stored version to the ingestion backend, once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import Part
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.reasons import Reason
from drivefeed.ports import Stage, Submission
from drivefeed.stages.imports import ImportStage, Task
from drivefeed.stages.outcome import Advance, Outcome

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.stages.backends import Backends


class Submit(ImportStage):
    """Commits the intent before the call; after a lost reply the job is looked up by our key."""

    stage = Stage.SUBMIT
    parts = (Part.BACKEND,)
    waits_while_paused = True

    def __init__(
        self,
        catalog: Catalog,
        backends: Backends,
        *,
        deadline_ms: int,
    ) -> None:
        super().__init__(catalog, usage_owner=backends.usage_owner)
        self._backends = backends
        self._deadline_ms = deadline_ms

    async def work(self, task: Task) -> Outcome | None:
        """Submit, or find what an earlier call submitted."""
        one = task.one
        was_submitted = one.state is State.SUBMITTED
        if one.state is State.STORED:
            # What waited for a person, or while it was paused, released its pages.
            if not await self.has_pages(task):
                return None
            facts = {"deadline_at": self._deadline(task), "backend": task.file.backend}
            self._backends.named(task.file.backend)
            one = await self.advance(task.claim, one.round, Advance(Event.SUBMITTING, facts))
        if one.state is not State.SUBMITTED:
            return None
        backend = self._backends.named(one.backend)
        job_id = await backend.find(task.idempotency_key) if was_submitted else None
        if job_id is None and not task.is_wanted:
            return Advance(
                Event.CANCELLED,
                reason=task.document.unwanted_reason or Reason.SUPERSEDED,
                detail="it was no longer wanted when it was to be submitted",
            )
        if job_id is None:
            with passing(self.checkpoint, "submit"):
                job_id = await backend.submit(self._submission(task))
        accepted: dict[str, str | int] = {
            "backend_job": job_id,
            "deadline_at": one.deadline_at or self._deadline(task),
        }
        return Advance(Event.ACCEPTED, accepted, detail=f"backend job {job_id}")

    def _deadline(self, task: Task) -> int:
        return self.catalog.clock.now() + task.file.deadline_ms(self._deadline_ms)

    def _submission(self, task: Task) -> Submission:
        one = task.one
        return Submission(
            key=task.idempotency_key,
            org_id=one.org_id,
            document_id=one.document_id,
            import_id=one.import_id,
            round=one.round,
            seq=task.document.seq,
            object_key=task.object_key,
            size=one.size or 0,
            name=task.file.name,
            media_type=task.file.media_type,
            source=task.file.source,
            folders=task.file.folders,
        )

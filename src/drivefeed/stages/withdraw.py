"""Withdraw: take a version out of the index and the store, tolerant of what is already gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import Part
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.reasons import Reason
from drivefeed.ports import BackendState, Stage
from drivefeed.stages.imports import ImportStage, Task
from drivefeed.stages.outcome import Advance, Again, Outcome

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.ports import IngestionBackend, ObjectStore
    from drivefeed.stages.backends import Backends

_CANCEL_AGAIN_MS = 2_000


class Withdraw(ImportStage):
    """Removes by names that carry the round, so that a later round is out of reach."""

    stage = Stage.WITHDRAW
    parts = (Part.BACKEND, Part.STORE)

    def __init__(self, catalog: Catalog, backends: Backends, store: ObjectStore) -> None:
        super().__init__(catalog)
        self._backends = backends
        self._store = store

    async def work(self, task: Task) -> Outcome | None:
        """Commit that nothing of it is believed any more, then remove."""
        one = task.one
        if one.state is State.SETTLED:
            if task.is_wanted or one.as_live == task.document.live:
                return None
            reason = task.document.unwanted_reason or Reason.SUPERSEDED
            one = await self.advance(task.claim, one.round, Advance(Event.UNWANTED, reason=reason))
        if one.state is not State.WITHDRAWING:
            return None
        backend = self._backends.named(one.backend)
        job_id = one.backend_job or await backend.find(task.idempotency_key)
        if job_id is not None and await self._still_works(backend, job_id):
            return Again(_CANCEL_AGAIN_MS, detail="the backend still works on it")
        with passing(self.checkpoint, "withdraw.points"):
            await backend.remove(
                document_id=one.document_id, import_id=one.import_id, round_=one.round
            )
        with passing(self.checkpoint, "withdraw.object"):
            await self._store.delete(task.object_key)
        return Advance(Event.REMOVED, reason=one.reason, detail="removed from index and store")

    async def _still_works(self, backend: IngestionBackend, job_id: str) -> bool:
        """Whether the backend may write points after we removed them.

        A job that is done cannot be cancelled any more, and writes nothing either.
        """
        with passing(self.checkpoint, "withdraw.cancel"):
            cancelled = await backend.cancel(job_id)
        if cancelled:
            return False
        status = await backend.status(job_id)
        return status.state is BackendState.WORKING

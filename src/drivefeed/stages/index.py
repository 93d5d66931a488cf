"""Index: do one job of the embedded ingestion backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.errors import Part
from drivefeed.domain.reasons import Reason
from drivefeed.ports import IndexJobState, Stage
from drivefeed.stages.discover import SubjectStage
from drivefeed.stages.outcome import Ask, Outcome, Rest

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.reminders import Claim
    from drivefeed.indexer.indexing import Indexing
    from drivefeed.ports import Delivery, IndexJobs

_REFUSALS = {Reason.CRASHES_WORKER: Reason.EXTRACTION_CRASHED}


class Index(SubjectStage):
    """Runs :class:`Indexing` for the job a delivery names."""

    stage = Stage.INDEX
    parts = (Part.STORE, Part.INDEX)
    _subject = "job_id"

    def __init__(self, catalog: Catalog, indexing: Indexing, jobs: IndexJobs) -> None:
        super().__init__(catalog)
        self._indexing = indexing
        self._jobs = jobs

    async def run(self, claim: Claim, delivery: Delivery) -> Outcome | None:
        """Do the job; what it came to is on the job, where the poll finds it."""
        await self._indexing.run(claim.subject_id, delivery.progress)
        return Rest()

    async def commit(self, claim: Claim, outcome: Outcome) -> None:
        """A job that cannot be done ends as refused, so that its import says why."""
        if isinstance(outcome, Ask):
            await self._jobs.finish(
                claim.subject_id,
                IndexJobState.REFUSED,
                reason=_REFUSALS.get(outcome.reason, outcome.reason),
                detail=outcome.detail,
            )
            outcome = Rest()
        await super().commit(claim, outcome)

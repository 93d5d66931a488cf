"""Index: do one job of the embedded ingestion backend."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from drivefeed.catalog import waiting
from drivefeed.domain.errors import Part
from drivefeed.domain.reasons import Reason
from drivefeed.ports import IndexJobState, Stage
from drivefeed.stages.discover import SubjectStage
from drivefeed.stages.outcome import Again, Ask, Outcome, Rest
from drivefeed.stages.runner import MOST_STARTS

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
        """Do the job; what it came to is on the job, where the poll finds it.

        A process that dies while the file is read may have died of it. One that dies earlier or
        later did not; so a file that was under way at a death is noted to be read, once it is.
        """
        if claim.starts == 1:
            await self._indexing.run(claim.subject_id, delivery.progress)
            return Rest()
        job = await self._jobs.get(claim.subject_id)
        # A number from before the starts were counted anew says nothing about these.
        harmless = job.read_at_start if job and job.read_at_start < claim.starts else 0
        deaths = claim.starts - 1 - harmless
        if deaths >= MOST_STARTS:
            return Ask(
                Reason.CRASHES_WORKER, f"The process ended {deaths} times while it was to be read."
            )
        await self._indexing.run(
            claim.subject_id,
            delivery.progress,
            once_read=partial(self._jobs.note_read, claim.subject_id, claim.starts),
        )
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

    async def noted(self, claim: Claim, outcome: Outcome) -> None:
        """Say on the import what its job waits for: the poll only sees that it works."""
        if not isinstance(outcome, Again) or outcome.hold is None:
            return
        job = await self._jobs.get(claim.subject_id)
        if job is not None:
            sent = job.submission
            await waiting.note_hold(
                self.catalog, sent.import_id, sent.round, hold=outcome.hold, detail=outcome.detail
            )

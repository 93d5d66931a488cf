"""What the stages of an import share: how they load it, and how their outcomes are committed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from drivefeed.catalog import imports as catalog_imports
from drivefeed.catalog import waiting
from drivefeed.catalog.files import File, fetch
from drivefeed.catalog.ledger import OURS
from drivefeed.catalog.quota import Need
from drivefeed.catalog.quota_line import hold_or_wait
from drivefeed.domain.errors import NeedsAttention, NotFound, Permanent
from drivefeed.domain.identity import idempotency_key, object_key
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.metering import estimated_pages
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import redact
from drivefeed.domain.scope import ending
from drivefeed.stages.outcome import Advance, Again, Ask, Outcome, Rest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.reminders import Claim
    from drivefeed.domain.errors import Part
    from drivefeed.domain.model import Document, Import
    from drivefeed.ports import Checkpoint, Delivery, Stage

    UsageOwner = Callable[[str | None], str]


@dataclass(slots=True)
class Task:
    """One run of a stage: the import as it is, and the claim under which it is worked on."""

    claim: Claim
    delivery: Delivery
    document: Document
    one: Import
    file: File

    @property
    def is_wanted(self) -> bool:
        """Whether this version should be searchable."""
        return self.document.wanted == self.one.import_id

    @property
    def object_key(self) -> str:
        """Where this round's bytes are kept."""
        one = self.one
        return object_key(one.org_id, one.document_id, one.import_id, one.round)

    @property
    def idempotency_key(self) -> str:
        """The key under which this round is submitted."""
        return idempotency_key(self.one.import_id, self.one.round)

    @property
    def estimate(self) -> Need:
        """The pages that it probably has, by its name and its listed size."""
        return Need(estimated_pages(ending(self.file.name), self.file.listed_size))


class ImportStage(ABC):
    """A stage whose subject is an import.

    Args:
        usage_owner: says by the name of a backend who keeps the books of usage: we do, or it does.
    """

    stage: Stage
    parts: tuple[Part, ...] = ()
    waits_while_paused = False

    def __init__(self, catalog: Catalog, *, usage_owner: UsageOwner = lambda _: OURS) -> None:
        self.catalog = catalog
        self._usage_owner = usage_owner

    @property
    def checkpoint(self) -> Checkpoint:
        """Where a test may kill the process."""
        return self.catalog.checkpoint

    def subject_id(self, payload: Mapping[str, Any]) -> str:
        """Return the import a delivery names."""
        return str(payload["import_id"])

    async def run(self, claim: Claim, delivery: Delivery) -> Outcome | None:
        """Load the import and do the stage's work on it."""
        try:
            document, one, file = await fetch(self.catalog, claim.subject_id)
        except NotFound:
            return None
        if one.attention is not None and one.attention is not Reason.BACKEND_LATE:
            # Somebody retried the delivery on the board.
            one = await waiting.unattended(self.catalog, claim.subject_id)
        if self.waits_while_paused and file.paused:
            return Again(0, hold=Reason.PAUSED)
        try:
            outcome = await self.work(Task(claim, delivery, document, one, file))
        except Permanent as error:
            outcome = Advance(Event.REFUSED, reason=error.reason, detail=redact(str(error)))
        except NeedsAttention as error:
            return Ask(error.reason, redact(str(error)))
        if isinstance(outcome, Advance):
            # What happened belongs to the round that was worked on, whatever the round is by now.
            return replace(outcome, round=one.round)
        return outcome

    @abstractmethod
    async def work(self, task: Task) -> Outcome | None:
        """Do the work of the stage and say what became of it."""

    async def commit(self, claim: Claim, outcome: Outcome) -> None:
        """Write an outcome and release the claim."""
        match outcome:
            case Advance(round=int() as round_):
                await self.advance(claim, round_, outcome, release=True)
            case Advance():
                raise TypeError("An event without the round that it happened to.")
            case Again(hold=Reason.PAUSED):
                await waiting.park(self.catalog, claim, hold=Reason.PAUSED)
            case Again():
                await waiting.again(
                    self.catalog,
                    claim,
                    due_at=self.catalog.clock.now() + outcome.after_ms,
                    hold=outcome.hold,
                    detail=outcome.detail,
                    polled=outcome.polled,
                )
            case Ask():
                later = outcome.again_after_ms
                await waiting.ask_a_person(
                    self.catalog,
                    claim,
                    reason=outcome.reason,
                    detail=outcome.detail,
                    keep_due=None if later is None else self.catalog.clock.now() + later,
                )
            case Rest():
                raise TypeError("An import rests by its state, not by an outcome.")

    async def advance(
        self, claim: Claim, round_: int, outcome: Advance, *, release: bool = False
    ) -> Import:
        """Commit one event; in the middle of a stage the claim is kept."""
        return await catalog_imports.advance(
            self.catalog,
            claim.subject_id,
            outcome.event,
            round_=round_,
            facts=outcome.facts,
            reason=outcome.reason,
            detail=outcome.detail,
            same_as=outcome.same_as,
            need=outcome.need,
            usage_owner=outcome.usage_owner,
            claim=claim if release else None,
        )

    def usage_owner(self, task: Task) -> str:
        """Return who keeps the books of an import: it is with a backend, or would be sent to it."""
        is_sent = task.one.state in {State.SUBMITTED, State.SETTLED}
        return self._usage_owner(task.one.backend if is_sent else task.file.backend)

    async def has_pages(self, task: Task) -> bool:
        """Hold pages of the organization's limit, or put the import into the line.

        Where the backend keeps the books, nothing is held and nobody waits.

        Returns:
            Whether the stage may go on.
        """
        if not task.file.is_limited or self.usage_owner(task) != OURS:
            return True
        return await hold_or_wait(self.catalog, task.claim, task.one, task.estimate)

    async def attempt_failed(self, claim: Claim, error: str, delivery: Delivery) -> None:
        """Record a failed attempt in the passport and release the claim."""
        await waiting.note_attempt(self.catalog, claim, error=error, attempt=delivery.attempt)

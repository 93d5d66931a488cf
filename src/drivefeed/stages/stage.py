"""What the runner asks of a stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.catalog.reminders import Claim
    from drivefeed.domain.errors import Part
    from drivefeed.ports import Delivery, Stage
    from drivefeed.stages.outcome import Outcome


class StageRun(Protocol):
    """One stage, bound to the parts it uses."""

    @property
    def stage(self) -> Stage:
        """The queue it serves."""
        ...

    @property
    def parts(self) -> tuple[Part, ...]:
        """The parts without which it cannot run."""
        ...

    def subject_id(self, payload: Mapping[str, Any]) -> str:
        """Return the subject that a delivery names."""
        ...

    async def run(self, claim: Claim, delivery: Delivery) -> Outcome | None:
        """Do the work and say what became of it; None where there was nothing to do."""
        ...

    async def commit(self, claim: Claim, outcome: Outcome) -> None:
        """Write an outcome and release the claim, in one transaction."""
        ...

    async def attempt_failed(self, claim: Claim, error: str, delivery: Delivery) -> None:
        """Record a failed attempt and release the claim."""
        ...

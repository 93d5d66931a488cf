"""The gate in front of Microsoft Graph: one for each app in a tenant, as Microsoft counts.

Microsoft prices requests in resource units (RU) and allows an app 1,250 of them a minute in the
smallest tenants (SharePoint's throttling page, October 2025). A gate spends a share of that, lets
the more urgent lane go first, and, once Microsoft asks one request to wait, holds back all of
them: requests made meanwhile are counted too and make the wait longer.

What may be spent is written in a *book* (:mod:`.budget_book` in this process's memory,
:mod:`.budget_shared` in a Redis that all processes ask); how to wait is in :mod:`.budget_gate`.
Libraries that limit rates (limits, pyrate-limiter, steindamm, throttled) know costs and Redis, but
none has lanes, a closure for everybody, or a server that tells what is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from drivefeed.domain.budget import (
    COST_MANY,
    COST_ONE,
    COST_PERMISSIONS,
    SMALLEST_MINUTE,
    Budget,
    Lane,
    Remaining,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "A_PERSONS",
    "BRIEF",
    "COST_MANY",
    "COST_ONE",
    "COST_PERMISSIONS",
    "SMALLEST_ALLOWANCE",
    "Book",
    "Budget",
    "Count",
    "Gate",
    "Lane",
    "Remaining",
    "Ticket",
    "Verdict",
]

SMALLEST_ALLOWANCE = SMALLEST_MINUTE
"""RU a minute for an app in a tenant of up to 1,000 licences."""
BRIEF = 5.0
"""Seconds a request waits inside the gate; a longer closure is raised, so no slot is held."""

A_PERSONS = 60.0
"""The same for a request on which a person waits, who would have to ask again."""


@dataclass(slots=True)
class Ticket:
    """A request's place in the line.

    Attributes:
        name: unique among all processes.
        since: when it was first refused, in milliseconds of the book's clock; 0 before that.
        behind: how many requests of its lane stand behind it in this process, itself included.
    """

    name: str
    lane: Lane
    cost: int
    since: int = 0
    behind: int = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a book says to one who asks.

    Attributes:
        go: the units are spent; send the request.
        wait_ms: come again after this time.
        why: ``line``, ``closed`` (Microsoft said so) or ``day`` (the day's budget is used up).
        since: the ticket's place, to be shown again.
        throttled_ms: for how long every request has been refused for being too many.
    """

    go: bool
    wait_ms: int = 0
    why: str = "go"
    since: int = 0
    throttled_ms: int = 0


@dataclass(frozen=True, slots=True)
class Count:
    """What is in a book.

    Attributes:
        waiting: requests in line, by lane.
    """

    used_minute: int
    used_day: int
    closed_ms: int
    throttled_ms: int
    waiting: Mapping[Lane, int]
    is_shared: bool


class Book(Protocol):
    """Knows what was spent and who waits. Never fails: what is shared has a part of its own."""

    @property
    def budget(self) -> Budget:
        """What may be spent."""
        ...

    async def ask(self, ticket: Ticket) -> Verdict:
        """Spend the ticket's units, or say when to ask again; who does not is passed by."""
        ...

    async def leave(self, ticket: Ticket) -> None:
        """Forget a ticket that was refused and does not come again."""
        ...

    async def close(self, told_ms: int | None, jitter: float) -> int:
        """Let nobody go for so long; return for how many milliseconds from now.

        Args:
            told_ms: None for a guess, which doubles from time to time.
            jitter: in [0, 1); makes a guess shorter by up to a half.
        """
        ...

    async def passed(self, told: Remaining | None) -> None:
        """Record that a request went through, and what its answer told."""
        ...

    async def count(self) -> Count:
        """Return what is in it."""
        ...


class Gate(Protocol):
    """Decides when a request may be sent."""

    async def enter(self, cost: int, lane: Lane, *, patience: float = BRIEF) -> None:
        """Wait until ``cost`` RU may be spent.

        The more urgent lane goes first, and equals in turn; but a lane that waits is given a
        part of the budget whatever the others ask for.

        Args:
            cost: RU of the request.
            lane: how urgent it is.
            patience: seconds the caller would rather wait here than be sent away.

        Raises:
            Throttled: Microsoft asked to wait longer than ``patience``, or the day's budget is
                used up; nothing was spent.
        """
        ...

    async def close(self, told: float | None) -> float:
        """Hold everything back after an answer 429 or 503; a closure is never made shorter.

        Args:
            told: seconds Microsoft asked for; None where it did not say, which doubles the wait
                from time to time, up to two minutes.

        Returns:
            Seconds until the gate opens again.
        """
        ...

    async def passed(self, told: Remaining | None = None) -> None:
        """Record that a request went through, so that the next guess starts small again.

        Args:
            told: what the answer said of Microsoft's own count. Until that is counted anew, no
                more is spent than is left of it.
        """
        ...

    async def count(self) -> Count:
        """Return how the budget stands."""
        ...

    @property
    def throttled_ms(self) -> int:
        """For how long every request has been refused for being too many, as far as is known."""
        ...

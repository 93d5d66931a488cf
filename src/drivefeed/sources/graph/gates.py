"""The gates of a process: one for each app in a tenant, whatever accounts read through it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.budget import Budget, BudgetStanding
from drivefeed.sources.graph.budget_book import LocalBook
from drivefeed.sources.graph.budget_gate import BookedGate
from drivefeed.sources.graph.budget_shared import SharedBook

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.ports import Clock, Ids
    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.sources.graph.budget import Book
    from drivefeed.sources.graph.budget_shared import Script

    App = tuple[str, str]

_SIGN_IN = Budget()
"""Nothing is spent of it: requests for tokens only share their closures."""


class Gates:
    """Makes gates, and has them share their budgets with other processes once that is possible.

    Args:
        clock: waits, and tells the time of what is not shared.
        ids: names this process, and gives jitter.
        budget: of a tenant, by its id or domain in small letters.
        prefix: of all keys in a shared Redis.
        script: finds the Redis to share budgets in, when the first gate is made; closed with the
            gates.
    """

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        *,
        budget: Callable[[str], Budget] | None = None,
        prefix: str = "drivefeed",
        script: Callable[[], Script | None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._budget = budget or (lambda _tenant: Budget())
        self._prefix = prefix
        self._member = ids.new()
        self._find = script
        self._script: Script | None = None
        self._has_looked = False
        self._gates: dict[App, BookedGate] = {}
        self._sign_ins: dict[App, BookedGate] = {}

    def of(self, account: GraphAccount) -> BookedGate:
        """Return the gate in front of Graph."""
        app = _named(account)
        if app not in self._gates:
            self._gates[app] = self._made(self._budget(app[0]), app, "graph")
        return self._gates[app]

    def of_sign_in(self, account: GraphAccount) -> BookedGate:
        """Return the gate in front of the sign-in service, whose throttling is its own."""
        app = _named(account)
        if app not in self._sign_ins:
            self._sign_ins[app] = self._made(_SIGN_IN, app, "entra")
        return self._sign_ins[app]

    def share(self, script: Script) -> None:
        """Keep all books in a Redis from now on."""
        self._script, self._has_looked = script, True
        for app, gate in self._gates.items():
            gate.book = self._book(self._budget(app[0]), app, "graph")
        for app, gate in self._sign_ins.items():
            gate.book = self._book(_SIGN_IN, app, "entra")

    async def aclose(self) -> None:
        """Let go of the Redis."""
        script, self._script = self._script, None
        if script is not None:
            await script.aclose()

    async def standings(self) -> list[BudgetStanding]:
        """Return how the budgets of all apps that were used stand."""
        found = []
        for (tenant_id, client_id), gate in self._gates.items():
            count = await gate.count()
            budget = gate.book.budget
            found.append(
                BudgetStanding(
                    tenant_id=tenant_id,
                    client_id=client_id,
                    used_minute=count.used_minute,
                    per_minute=budget.our_minute,
                    used_day=count.used_day,
                    per_day=budget.our_day,
                    closed_ms=count.closed_ms,
                    throttled_ms=count.throttled_ms,
                    waiting=dict(count.waiting),
                    is_shared=count.is_shared,
                )
            )
        return found

    def _made(self, budget: Budget, app: App, service: str) -> BookedGate:
        return BookedGate(self._book(budget, app, service), self._clock, self._ids)

    def _book(self, budget: Budget, app: App, service: str) -> Book:
        if not self._has_looked:
            self._script, self._has_looked = self._find(), True
        if self._script is None:
            return LocalBook(budget, self._clock)
        tenant_id, client_id = app
        return SharedBook(
            budget,
            self._script,
            name=f"{self._prefix}:{service}:{tenant_id}:{client_id}",
            member=self._member,
            clock=self._clock,
        )


def _named(account: GraphAccount) -> App:
    """Return what Microsoft counts by; ids and domains are written in any case."""
    tenant_id, client_id = account.app
    return tenant_id.casefold(), client_id.casefold()

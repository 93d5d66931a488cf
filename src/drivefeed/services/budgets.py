"""Tells how the budgets at Microsoft stand: to the catalog for people, and as metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from drivefeed.catalog.budgets import FRESH_MS, forget_budgets, tell_budgets
from drivefeed.telemetry import BUDGET_CLOSED_SECONDS, BUDGET_UNITS, BUDGET_WAITING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.budget import BudgetStanding
    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.sources.graph.gates import Gates

LOOK_SECONDS: Final = 3.0
_TELL_AGAIN_MS: Final = FRESH_MS // 3
_FORGET_EVERY_MS: Final = 3_600_000


class BudgetBoard:
    """Looks at the budgets of all accounts.

    Args:
        accounts: whose apps are looked at, also those that this process has no request of.
        tells: whether it writes to the catalog; one process does.
    """

    def __init__(
        self, catalog: Catalog, gates: Gates, accounts: Mapping[str, GraphAccount], *, tells: bool
    ) -> None:
        self._catalog = catalog
        self._gates = gates
        self._accounts = accounts
        self._tells = tells
        self._told: dict[tuple[str, str], BudgetStanding] = {}
        self._told_at = 0
        self._forgot_at = 0

    async def tick(self) -> None:
        """Look, set the metrics, and write what is news."""
        if self._tells:
            for account in list(self._accounts.values()):
                self._gates.of(account)
        standings = await self._gates.standings()
        for one in standings:
            _measure(one)
        if not self._tells:
            return
        now = self._catalog.clock.now()
        is_old = now - self._told_at >= _TELL_AGAIN_MS
        news = [
            one
            for one in standings
            if self._told.get((one.tenant_id, one.client_id)) != one
            or (is_old and (one.used_minute or one.waiting or one.throttled_ms))
        ]
        if news:
            await tell_budgets(self._catalog, news)
            self._told |= {(one.tenant_id, one.client_id): one for one in news}
            self._told_at = now
        if now - self._forgot_at >= _FORGET_EVERY_MS:
            await forget_budgets(self._catalog)
            self._forgot_at = now


def _measure(one: BudgetStanding) -> None:
    app = f"{one.tenant_id}/{one.client_id}"
    BUDGET_UNITS.labels(app, "minute", "used").set(one.used_minute)
    BUDGET_UNITS.labels(app, "minute", "budget").set(one.per_minute)
    BUDGET_UNITS.labels(app, "day", "used").set(one.used_day)
    BUDGET_UNITS.labels(app, "day", "budget").set(one.per_day)
    BUDGET_CLOSED_SECONDS.labels(app).set(one.closed_ms / 1000)
    for lane, count in one.as_dict()["waiting"].items():
        BUDGET_WAITING.labels(app, lane).set(count)

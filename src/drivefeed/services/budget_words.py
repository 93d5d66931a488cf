"""How a budget at Microsoft stands, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drivefeed.domain.budget import Lane
from drivefeed.domain.visible import visible
from drivefeed.domain.words import count_of
from drivefeed.services.trouble_words import duration_of

if TYPE_CHECKING:
    from drivefeed.catalog.budgets import ToldBudget
    from drivefeed.domain.budget import BudgetStanding

_MINUTES_FROM_MS = 120_000
_LANES = {
    Lane.CHANGES: "changes",
    Lane.RETRIES: "retries",
    Lane.BACKFILL: "backfill",
    Lane.VERIFY: "checks",
}


def budget_sentence(one: BudgetStanding) -> str:
    """Say what is used, who waits, and for how long Microsoft wants to be left alone."""
    words = (
        f"{one.used_minute:,} of {one.per_minute:,} resource units in the last minute, "
        f"{one.used_day:,} of {one.per_day:,} in 24 hours"
    )
    waiting = [f"{_LANES[lane]} {one.waiting[lane]}" for lane in Lane if one.waiting.get(lane)]
    if waiting:
        words += f"; requests that wait: {', '.join(waiting)}"
    words += "."
    if one.closed_ms:
        words += f" Microsoft asked to wait: {_rest_of(one.closed_ms)} more."
    if not one.is_shared:
        words += " This is of one process alone; the others do not share it now."
    return words


def _rest_of(ms: int) -> str:
    return duration_of(ms) if ms >= _MINUTES_FROM_MS else count_of(-(-ms // 1000), "second")


def accounts_of(told: ToldBudget) -> str:
    """Name the accounts that spend from it."""
    names = [f"'{visible(name)}'" for name in told.accounts.values()]
    return f"account {names[0]}" if len(names) == 1 else f"accounts {', '.join(names)}"


def budget_dict(told: ToldBudget) -> dict[str, Any]:
    """Return it for JSON."""
    return {
        "accounts": sorted(told.accounts.values()),
        **told.standing.as_dict(),
        "words": budget_sentence(told.standing),
    }

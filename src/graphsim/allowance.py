"""Resource units: what each app may spend in a tenant, and how it is told to stop.

Prices and limits are those of SharePoint's throttling page (October 2025): 1 unit for one item,
for delta with a token and for a download, 2 for lists and for changes, 5 for permissions; refused
requests count as well; the RateLimit headers appear from 80 % of the units of a minute. How long
the page's Retry-After is, and by how much requests during it make it longer, is not published:
graphsim waits for the end of the minute, and adds ``extension`` seconds for each request.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from graphsim.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphsim.clock import Clock

_MINUTE, _DAY = 60.0, 86_400.0
_LONGEST = 3600.0
"""Seconds: a client need not believe in a longer wait, and is not blamed for that."""
_PRICES = {
    "drive": 1, "item": 1, "children": 2, "content": 1, "contentstream": 1, "share": 1,
    "drives": 2, "directory": 1, "subscriptions": 1,
}  # fmt: skip


def price(op: str, url: str, method: str = "GET") -> int:
    """Return the resource units of a request; the download host itself is free."""
    if "permissions" in url.lower():
        return 5
    if op == "delta":
        return 1 if "token=" in url else 2
    if op in _PRICES and method not in {"GET", "HEAD"}:
        return 2
    return _PRICES.get(op, 0)


@dataclass
class Window:
    """Units spent since a window of time began."""

    length: float
    began: float = -math.inf
    used: int = 0

    def spend(self, now: float, units: int) -> None:
        """Count units, in a new window if the last one is over."""
        if now >= self.began + self.length:
            self.began, self.used = now, 0
        self.used += units

    def left(self, now: float) -> float:
        """Return the seconds until the window is over."""
        return max(self.began + self.length - now, 0.0)


@dataclass
class Account:
    """What one app has spent in one tenant (times: epoch seconds)."""

    app: str
    tenant: str
    units: int = 0
    """All units so far, those of refused requests included."""
    refused: int = 0
    """Requests that were refused because of the limits."""
    minute: Window = field(default_factory=lambda: Window(_MINUTE))
    day: Window = field(default_factory=lambda: Window(_DAY))
    penalty_until: float = -math.inf
    """Until when every request is refused."""
    told_at: float = -math.inf
    told_until: float = -math.inf
    """Until when the app was last asked to wait, by the limits or by a fault."""

    def told(self, now: float, headers: Mapping[str, str]) -> None:
        """Note that an answer asked to wait: the greater of Retry-After and RateLimit-Reset."""
        fields = {name.lower(): value for name, value in headers.items()}
        waits = [_seconds(fields.get(name, ""), now) for name in ("retry-after", "ratelimit-reset")]
        wait = max(waits)
        if wait > 0:
            if now >= self.told_until:
                self.told_at = now
            self.told_until = max(self.told_until, now + wait)


class Allowance:
    """The limits, and the accounts of all apps in all tenants.

    Args:
        clock: Decides when windows end.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.per_minute: int | None = None
        """Units a minute of each app in each tenant; no limit by default."""
        self.per_day: int | None = None
        self.scale = 1.0
        """Multiplies both, so that a test need not take as long as the real limit does."""
        self.extension = 5.0
        """Seconds by which a request during a penalty makes it longer."""
        self.accounts: dict[tuple[str, str], Account] = {}

    def account(self, app: str, tenant: str) -> Account:
        """Return the account of an app in a tenant."""
        return self.accounts.setdefault((app, tenant), Account(app, tenant))

    def charge(self, account: Account, units: int) -> dict[str, str]:
        """Count the units of a request.

        Returns:
            The RateLimit headers of its answer; none below 80 % of the minute's units.

        Raises:
            GraphError: 429, with Retry-After, RateLimit headers, and the units counted all the
                same.
        """
        now = self._clock.now()
        account.units += units
        account.minute.spend(now, units)
        account.day.spend(now, units)
        minute, day = self._limit(self.per_minute), self._limit(self.per_day)
        if now < account.penalty_until:
            account.penalty_until += self.extension
            raise self._refusal(account, now, minute)
        if day is not None and account.day.used > day:
            account.penalty_until = now + account.day.left(now)
            raise self._refusal(account, now, minute)
        if minute is not None and account.minute.used > minute:
            account.penalty_until = now + account.minute.left(now)
            raise self._refusal(account, now, minute)
        return self._headers(account, now, minute)

    def _limit(self, units: int | None) -> int | None:
        return None if units is None else int(units * self.scale)

    def _headers(self, account: Account, now: float, limit: int | None) -> dict[str, str]:
        used = account.minute.used
        if limit is None or used * 10 < limit * 8:
            return {}
        return {
            "RateLimit-Limit": str(limit),
            "RateLimit-Remaining": str(max(limit - used, 0)),
            "RateLimit-Reset": str(math.ceil(account.minute.left(now))),
        }

    def _refusal(self, account: Account, now: float, limit: int | None) -> GraphError:
        account.refused += 1
        headers = self._headers(account, now, limit)
        headers["Retry-After"] = str(max(math.ceil(account.penalty_until - now), 1))
        message = "The request has been throttled."
        return GraphError(429, "activityLimitReached", message, "throttledRequest", headers)


def _seconds(text: str, now: float) -> float:
    """Return the seconds that a header asks to wait; 0 where it makes no sense."""
    try:
        return min(float(text), _LONGEST)
    except ValueError:
        pass
    try:
        return min(parsedate_to_datetime(text).timestamp() - now, _LONGEST)
    except ValueError:
        return 0.0

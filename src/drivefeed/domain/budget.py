"""What Microsoft lets an app ask for, in resource units: amounts, urgency, and how it stands. Pure.

Source: SharePoint's page "Avoid getting throttled or blocked", as of October 2025.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

BY_LICENCES: Final = (
    (1_000, 1_250, 1_200_000),
    (5_000, 2_500, 2_400_000),
    (15_000, 3_750, 3_600_000),
    (50_000, 5_000, 4_800_000),
    (None, 6_250, 6_000_000),
)
"""Up to how many licences of the tenant (None: any), and the units of a minute and of a day."""
SMALLEST_MINUTE: Final = BY_LICENCES[0][1]
_DAY_OF_A_MINUTE: Final = BY_LICENCES[0][2] // BY_LICENCES[0][1]
"""A day's units are so many minutes' units, whatever the tenant's size."""
_MINUTES_OF_A_DAY: Final = 1_440

COST_ONE: Final = 1
"""Units of a single item, of delta with a token, and of a download."""
COST_MANY: Final = 2
"""Units of a query for many items, such as a listing, or delta without a token."""
COST_PERMISSIONS: Final = 5
"""Units of anything that reads or changes permissions."""


class Lane(IntEnum):
    """How urgent a request is when the budget is short; the most urgent first."""

    CHANGES = 0
    RETRIES = 1
    BACKFILL = 2
    VERIFY = 3


GUARANTEED: Final = {Lane.RETRIES: 1 / 4, Lane.BACKFILL: 1 / 8, Lane.VERIFY: 1 / 16}
"""What a lane that waits gets at least, as a part of what more urgent ones are given meanwhile."""
DAY_PART: Final = {Lane.CHANGES: 1.0, Lane.RETRIES: 1.0, Lane.BACKFILL: 0.9, Lane.VERIFY: 0.8}
"""The part of a day's budget that a lane may use up; the rest is kept for more urgent ones."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What an app may spend in a tenant.

    Attributes:
        minute: units a minute that Microsoft grants.
        day: units in 24 hours; 0 for what belongs to ``minute``.
        share: the part of both that we spend.
    """

    minute: int = SMALLEST_MINUTE
    day: int = 0
    share: float = 0.8

    @classmethod
    def of_tenant(cls, licences: int, *, share: float = 0.8) -> Budget:
        """Return what Microsoft grants in a tenant of so many licences."""
        minute, day = next(
            (minute, day) for most, minute, day in BY_LICENCES if most is None or licences <= most
        )
        return cls(minute, day, share)

    @property
    def burst(self) -> float:
        """Units that may be spent at once after a rest.

        Half of what the share leaves over at most, so that together with a minute at full pace it
        stays below the allowance, wherever Microsoft's minute begins.
        """
        left_over = self.minute * (1 - self.share) / 2
        return max(float(COST_PERMISSIONS), min(left_over, self.minute * self.share / 6))

    @property
    def rate(self) -> float:
        """Units a millisecond in the long run."""
        return min(self.minute * self.share, self.minute - self.burst) / 60_000

    @property
    def our_minute(self) -> int:
        """Units a minute that we spend."""
        return int(self.minute * self.share)

    @property
    def our_day(self) -> int:
        """Units in 24 hours that we spend."""
        return int((self.day or self.minute * _DAY_OF_A_MINUTE) * self.share)

    def minutes_for(self, units: int) -> float:
        """Return how many minutes so many units take at least, if nothing else is asked for."""
        full_days = max(units - 1, 0) // max(self.our_day, 1)
        return max(units / (self.minute * self.share), full_days * _MINUTES_OF_A_DAY)

    def part(self, fraction: float) -> Budget:
        """Return the budget of one who may spend only a fraction of our share."""
        return Budget(self.minute, self.day, self.share * fraction)


@dataclass(frozen=True, slots=True)
class Remaining:
    """What an answer told of Microsoft's own count.

    Attributes:
        limit: units a minute that Microsoft grants; 0 where it was not told.
        left: units that are left of them.
        reset_ms: until it counts anew.
    """

    limit: int
    left: int
    reset_ms: int


@dataclass(frozen=True, slots=True)
class BudgetStanding:
    """How the budget of an app in a tenant stands.

    Attributes:
        used_minute: units spent in the last minute, and ``per_minute`` what we allow ourselves.
        used_day: the same for the last 24 hours, and ``per_day``.
        closed_ms: for how long Microsoft asked us to send nothing.
        throttled_ms: for how long every request has been refused for being too many.
        waiting: requests that wait for their turn, by lane; lanes without any are left out.
        is_shared: whether all processes share it; otherwise each has a part of its own.
    """

    tenant_id: str
    client_id: str
    used_minute: int
    per_minute: int
    used_day: int
    per_day: int
    closed_ms: int = 0
    throttled_ms: int = 0
    waiting: Mapping[Lane, int] = field(default_factory=dict)
    is_shared: bool = True

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON; lanes by their names, in small letters."""
        return {
            "tenant_id": self.tenant_id,
            "client_id": self.client_id,
            "used_minute": self.used_minute,
            "per_minute": self.per_minute,
            "used_day": self.used_day,
            "per_day": self.per_day,
            "closed_seconds": round(self.closed_ms / 1000, 1),
            "throttled_seconds": round(self.throttled_ms / 1000, 1),
            "waiting": {lane.name.lower(): self.waiting.get(lane, 0) for lane in Lane},
            "is_shared": self.is_shared,
        }

"""How often a drive is asked for changes: a busy one often, a sleeping one seldom. Pure.

A look with a stored link costs one resource unit (Microsoft's throttling page), whatever it finds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_QUIET_SHARE: Final = 20
"""A drive that was quiet for an hour is asked every third minute: an hour by this."""
_MINUTE_MS: Final = 60_000
REVISIT_MS: Final = 45_000
"""Milliseconds after a word about a change until the drive is asked once more."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often drives are asked.

    Attributes:
        slowest_ms: a sleeping drive is asked at least this often.
        told_ms: the same for a drive whose changes Microsoft tells us of.
        revisit_ms: how long after such a word the drive is asked once more: what delta shows
            lags behind by up to a minute.
        looks_a_minute: of all drives of an app together, what the budget leaves for looking.
    """

    slowest_ms: int = 5 * _MINUTE_MS
    told_ms: int = 60 * _MINUTE_MS
    revisit_ms: int = REVISIT_MS
    looks_a_minute: float = 500.0

    def between_looks(
        self, shortest_ms: int, *, quiet_ms: int | None, is_told: bool, drives: int
    ) -> int:
        """Return the milliseconds until a drive is asked again.

        Args:
            shortest_ms: the pace of the settings, which a busy drive gets.
            quiet_ms: since a change was found in it; None where none was ever found.
            is_told: whether Microsoft tells us of its changes.
            drives: how many its app asks for changes.
        """
        affordable = round(drives * _MINUTE_MS / self.looks_a_minute)
        if is_told:
            return max(shortest_ms, self.told_ms, affordable)
        wanted = self.slowest_ms if quiet_ms is None else quiet_ms // _QUIET_SHARE
        return max(shortest_ms, min(self.slowest_ms, wanted), affordable)

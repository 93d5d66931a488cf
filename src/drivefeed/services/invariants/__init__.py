"""What must be true whatever happened: collected once, checked by pure functions, told in words."""

from __future__ import annotations

from drivefeed.services.invariants.facts import Facts, collect
from drivefeed.services.invariants.finding import Finding
from drivefeed.services.invariants.rules import INVARIANTS, Invariant

__all__ = ["INVARIANTS", "Facts", "Finding", "Invariant", "collect"]

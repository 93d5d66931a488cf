"""A part that fails in one place and works in another stays visible, and keeps nobody waiting."""

from __future__ import annotations

from drivefeed.domain.errors import Part
from drivefeed.stages.breaker import NOTED_MS, Breakers
from support.clock import CountedIds, ManualClock


def test_what_was_noted_is_shown_until_it_was_well_for_a_while() -> None:
    clock = ManualClock()
    breakers = Breakers(clock, CountedIds())
    breakers.note(Part.CATALOG, "It is full.")
    breakers.calm(Part.CATALOG)
    assert breakers.open_parts() == {Part.CATALOG: "It is full."}
    clock.turn(ms=NOTED_MS + 1)
    assert breakers.open_parts() == {Part.CATALOG: "It is full."}
    breakers.calm(Part.CATALOG)
    assert not breakers.open_parts()

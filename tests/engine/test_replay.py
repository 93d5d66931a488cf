"""An example of the state machine plays again as it did, whatever was played before it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from engine.edited_drive import seen
from engine.faults import FAULTS
from engine.ground import ground
from engine.test_state_machine import Drives
from graphsim.items import Profile

if TYPE_CHECKING:
    from collections.abc import Iterator

_DRAWING = [number for number, (kind, _) in enumerate(FAULTS) if kind in {"page_size", "repeat"}]
_REFUSING = [number for number, (kind, _) in enumerate(FAULTS) if kind in {"status", "throttle"}]

Story = list[tuple[float, str, str | None, int, str | None]]


@pytest.fixture
def shared() -> Iterator[None]:
    seen.clear()
    seen["examples"] = 1  # rclone's turn is not now
    yield
    ground().close()
    ground.cache_clear()


def _play(seed: int) -> Story:
    """Play some steps; return when what was asked of which item, the answer, and the fault."""
    machine = Drives()
    machine.begin(profile=Profile.BUSINESS, links="query", seed=seed)
    began = ground().sim.clock.now()
    for number in range(6):
        machine.create(where=number, name=number, content=number)
    for number in (*_DRAWING, *_REFUSING[::4]):
        machine.sync(number=number, seconds=10)
        machine.edit(which=number, content=number, touch=False)
    machine.teardown()
    return [
        (round(one.time - began, 3), one.op, one.item, one.status, one.fault)
        for one in ground().sim.log.entries()
    ]


def test_an_example_plays_again(shared: None) -> None:
    first = _play(7)
    assert _play(8) != first, "what is drawn follows from the seed"
    assert _play(7) == first

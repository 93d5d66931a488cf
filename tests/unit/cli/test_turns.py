"""How long the threads of a command compute before another one has its turn."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from drivefeed.cli.context import run

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def pythons_turns() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.005)
    yield
    sys.setswitchinterval(before)


def test_the_event_loop_of_a_command_waits_no_longer_than_a_short_turn(
    pythons_turns: None,
) -> None:
    async def turn() -> float:
        return sys.getswitchinterval()

    assert run(turn()) == pytest.approx(0.0005)

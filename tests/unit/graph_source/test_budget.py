import asyncio

import pytest

from drivefeed.domain.errors import Throttled
from drivefeed.sources.graph import Lane, LocalGate
from integration.graph_source.kit import HurriedClock, PlainIds, TurnedClock


def gate_of(
    clock: HurriedClock | TurnedClock, allowance: int = 1250, share: float = 0.8
) -> LocalGate:
    return LocalGate(clock, PlainIds(), allowance=allowance, share=share)


async def test_it_spends_its_share_and_never_more_than_the_allowance_in_any_minute() -> None:
    clock = HurriedClock()
    gate = gate_of(clock)
    spent: list[tuple[int, int]] = []
    start = clock.now()
    while clock.now() < start + 180_000:
        await gate.enter(2, Lane.CHANGES)
        spent.append((clock.now(), 2))
    for begin, _ in spent:
        minute = sum(cost for at, cost in spent if begin <= at < begin + 60_000)
        assert minute <= 1250
    last = sum(cost for at, cost in spent if at >= start + 120_000)
    assert 980 <= last <= 1020, "0.8 of 1,250 a minute in the long run"


async def test_urgent_lanes_go_first_and_equals_in_turn() -> None:
    clock = TurnedClock()
    gate = gate_of(clock, allowance=60)
    for _ in range(8):
        await gate.enter(1, Lane.CHANGES)
    order: list[str] = []

    async def ask(name: str, lane: Lane) -> None:
        await gate.enter(1, lane)
        order.append(name)

    async with asyncio.TaskGroup() as group:
        for name, lane in (
            ("verify", Lane.VERIFY),
            ("backfill", Lane.BACKFILL),
            ("retry", Lane.RETRIES),
            ("change 1", Lane.CHANGES),
            ("change 2", Lane.CHANGES),
        ):
            group.create_task(ask(name, lane))
        await clock.turn(0)
        assert order == [], "the burst is used up"
        for _ in range(5):
            await clock.turn(1.3)
    assert order == ["change 1", "change 2", "retry", "backfill", "verify"]


async def test_a_throttle_holds_back_everybody_until_the_told_time() -> None:
    clock = HurriedClock()
    gate = gate_of(clock)
    assert await gate.close(30.0) == 30.0
    for lane in Lane:
        with pytest.raises(Throttled) as caught:
            await gate.enter(1, lane)
        assert caught.value.seconds == 30.0
    clock.advance(26.0)
    assert clock.slept == []
    await gate.enter(1, Lane.VERIFY)
    assert clock.slept == [4.0], "what is left is short enough to wait for"


async def test_a_patient_request_waits_inside() -> None:
    clock = HurriedClock()
    gate = gate_of(clock)
    await gate.close(30.0)
    await gate.enter(1, Lane.CHANGES, patience=60.0)
    assert clock.slept == [30.0]


async def test_a_shorter_wait_does_not_open_a_closed_gate() -> None:
    gate = gate_of(HurriedClock())
    await gate.close(60.0)
    assert await gate.close(5.0) == 60.0
    assert await gate.close(None) == 60.0


async def test_waits_that_nobody_named_double_up_to_two_minutes_and_start_anew() -> None:
    clock = HurriedClock()
    gate = gate_of(clock)
    waits = []
    for _ in range(8):
        waits.append(await gate.close(None))
        await gate.close(None)
        clock.advance(waits[-1])
    assert waits[:4] == [3.75, 7.5, 15.0, 30.0]
    assert max(waits) == waits[-1] == 90.0, "120 seconds less the jitter"
    await gate.passed()
    assert await gate.close(None) == 3.75


async def test_whoever_gives_up_makes_room() -> None:
    clock = HurriedClock()
    gate = gate_of(clock, allowance=60)
    for _ in range(12):
        await gate.enter(1, Lane.CHANGES)
    asked = [asyncio.create_task(gate.enter(1, Lane.CHANGES)) for _ in range(3)]
    asked[0].cancel()
    await asyncio.wait(asked)
    assert [task.cancelled() for task in asked] == [True, False, False]


async def test_a_closure_reaches_those_already_in_line() -> None:
    clock = HurriedClock()
    gate = gate_of(clock, allowance=60)
    for _ in range(12):
        await gate.enter(1, Lane.CHANGES)
    asked = [asyncio.create_task(gate.enter(1, Lane.CHANGES)) for _ in range(4)]
    await gate.close(600.0)
    for result in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(result, Throttled)

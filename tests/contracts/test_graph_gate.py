"""What every gate in front of Microsoft Graph keeps, in memory or shared in a Redis."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator

import pytest

from drivefeed.domain.budget import DAY_PART, Lane, Remaining
from drivefeed.domain.errors import Throttled
from drivefeed.sources.graph.budget import Ticket
from integration.graph_source.kit import HurriedClock
from support.gates import Works, works_of
from support.valkey import valkey_server, valkey_url

__all__ = ["valkey_server", "valkey_url"]


@pytest.fixture(params=["local", "shared"])
async def works(request: pytest.FixtureRequest) -> AsyncIterator[Works]:
    url = request.getfixturevalue("valkey_url") if request.param == "shared" else None
    async with works_of(url) as found:
        yield found


# --- rate and burst ----------------------------------------------------------------------------


async def test_it_spends_its_share_and_never_more_than_the_allowance_in_any_minute(
    works: Works,
) -> None:
    clock = HurriedClock()
    gate = works.gate(1250, 0.8, clock=clock)
    await gate.enter(0, Lane.CHANGES)
    clock.advance(120)
    start = clock.now()
    spent: list[tuple[int, int]] = []
    while clock.now() < start + 150_000:
        await gate.enter(5, Lane.CHANGES)
        spent.append((clock.now(), 5))
    for begin, _ in spent:
        assert sum(cost for at, cost in spent if begin <= at < begin + 60_000) <= 1250
    last = sum(cost for at, cost in spent if start + 90_000 <= at < start + 150_000)
    assert 975 <= last <= 1005, "0.8 of 1,250 a minute in the long run"


@pytest.mark.parametrize("share", [0.1, 0.8, 1.0])
async def test_a_rest_earns_one_burst_and_no_more(works: Works, share: float) -> None:
    gate = works.gate(600, share)
    await works.rest(gate)
    went = await works.drain(gate)
    burst = works.books[0].budget.burst
    assert burst - 1.01 <= went <= burst + 0.01
    assert went + works.books[0].budget.rate * 60_000 <= 600.01


async def test_what_costs_more_than_a_burst_goes_all_the_same(works: Works) -> None:
    gate = works.gate(60, 0.1)
    await works.rest(gate)
    asked = asyncio.create_task(gate.enter(20, Lane.CHANGES))
    await works.until(asked.done, most=30)


# --- lanes -------------------------------------------------------------------------------------


async def test_urgent_lanes_go_first_and_equals_in_turn(works: Works) -> None:
    gate = works.gate(60)
    await works.drain(gate)
    order: list[str] = []

    async def ask(name: str, lane: Lane) -> None:
        await gate.enter(1, lane)
        order.append(name)

    wanted = (
        ("verify", Lane.VERIFY),
        ("backfill", Lane.BACKFILL),
        ("retry", Lane.RETRIES),
        ("change 1", Lane.CHANGES),
        ("change 2", Lane.CHANGES),
    )
    tasks = [asyncio.create_task(ask(name, lane)) for name, lane in wanted]
    await works.settle()
    assert order == [], "the burst is used up"
    await works.until(lambda: all(task.done() for task in tasks), most=20)
    assert order == ["change 1", "change 2", "retry", "backfill", "verify"]


async def test_a_lane_that_waits_gets_its_part_whatever_the_others_ask(works: Works) -> None:
    gate = works.gate(1200, 0.5)
    await works.drain(gate)
    went: Counter[Lane] = Counter()
    stop = False

    async def greedy(lane: Lane) -> None:
        while not stop:
            await gate.enter(1, lane)
            went[lane] += 1

    tasks = [asyncio.create_task(greedy(lane)) for lane in Lane for _ in range(3)]
    await works.turn(20)
    stop = True
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    total = sum(went.values())
    assert total >= 190, "ten a second"
    assert went[Lane.CHANGES] > total / 2
    assert went[Lane.RETRIES] > went[Lane.BACKFILL] > went[Lane.VERIFY] >= total / 32


async def test_a_change_overtakes_a_line_of_others(works: Works) -> None:
    gate = works.gate(120, 0.5)
    await works.drain(gate)
    order: list[str] = []

    async def ask(name: str, lane: Lane) -> None:
        await gate.enter(1, lane)
        order.append(name)

    tasks = [asyncio.create_task(ask(f"old {each}", Lane.BACKFILL)) for each in range(10)]
    await works.turn(3.2)
    before = len(order)
    tasks.append(asyncio.create_task(ask("change", Lane.CHANGES)))
    await works.until(lambda: "change" in order, most=5)
    assert order.index("change") <= before + 1
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_whoever_gives_up_makes_room(works: Works) -> None:
    gate = works.gate(60)
    await works.drain(gate)
    asked = [asyncio.create_task(gate.enter(1, Lane.CHANGES)) for _ in range(3)]
    await works.settle()
    asked[0].cancel()
    await asyncio.wait(asked[:1])
    await works.until(lambda: all(task.done() for task in asked), most=4)
    assert [task.cancelled() for task in asked] == [True, False, False]


async def test_whoever_died_in_line_is_passed_by(works: Works) -> None:
    gate = works.gate(60)
    await works.drain(gate)
    dead = Ticket("dead", Lane.CHANGES, 5)
    assert not (await works.books[0].inner.ask(dead)).go
    asked = asyncio.create_task(gate.enter(1, Lane.VERIFY))
    await works.until(asked.done, most=3)


# --- closures ----------------------------------------------------------------------------------


async def test_a_throttle_holds_back_everybody_until_the_told_time(works: Works) -> None:
    clock = HurriedClock()
    gate = works.gate(clock=clock)
    assert await gate.close(30.0) == 30.0
    for lane in Lane:
        with pytest.raises(Throttled) as caught:
            await gate.enter(1, lane)
        assert caught.value.seconds == 30.0
    clock.advance(26.0)
    assert clock.slept == []
    await gate.enter(1, Lane.VERIFY)
    assert clock.slept[0] == 4.0, "what is left is short enough to wait for"
    assert sum(clock.slept) < 4.2


async def test_a_patient_request_waits_inside(works: Works) -> None:
    clock = HurriedClock()
    gate = works.gate(clock=clock)
    await gate.close(30.0)
    await gate.enter(1, Lane.CHANGES, patience=60.0)
    assert clock.slept[0] == 30.0


async def test_after_a_closure_there_is_no_burst(works: Works) -> None:
    gate = works.gate(600, 0.5)
    await works.rest(gate)
    await gate.close(60.0)
    works.clock.turn(seconds=60)
    asked = [asyncio.create_task(gate.enter(1, Lane.CHANGES)) for _ in range(40)]
    await works.turn(2)
    assert sum(task.done() for task in asked) <= 11, "five a second, and no more"
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)


async def test_a_shorter_wait_does_not_open_a_closed_gate(works: Works) -> None:
    gate = works.gate()
    assert await gate.close(60.0) == 60.0
    assert await gate.close(5.0) == 60.0
    assert await gate.close(None) == 60.0


async def test_waits_that_nobody_named_double_up_to_two_minutes_and_start_anew(
    works: Works,
) -> None:
    gate = works.gate()
    waits = []
    for _ in range(8):
        waits.append(await gate.close(None))
        await gate.close(None)
        works.clock.turn(seconds=waits[-1])
    assert waits[:4] == [3.75, 7.5, 15.0, 30.0]
    assert max(waits) == waits[-1] == 90.0, "120 seconds less the jitter"
    await gate.passed()
    assert await gate.close(None) == 3.75


async def test_a_closure_reaches_those_already_in_line(works: Works) -> None:
    gate = works.gate(60)
    await works.drain(gate)
    asked = [asyncio.create_task(gate.enter(1, lane)) for lane in Lane for _ in range(3)]
    await works.settle()
    await gate.close(600.0)
    await works.turn(1.5)
    for result in await asyncio.gather(*asked, return_exceptions=True):
        assert isinstance(result, Throttled)


async def test_it_tells_for_how_long_nothing_has_passed(works: Works) -> None:
    gate = works.gate()
    await gate.close(20.0)
    works.clock.turn(seconds=20)
    await gate.close(20.0)
    works.clock.turn(seconds=25)
    assert (await gate.count()).throttled_ms == gate.throttled_ms == 45_000
    await gate.enter(1, Lane.CHANGES)
    await gate.passed()
    assert (await gate.count()).throttled_ms == gate.throttled_ms == 0


# --- what Microsoft tells before it refuses ------------------------------------------------------


async def spent_in(works: Works, gate: object, seconds: float) -> int:
    went = 0

    async def ask() -> None:
        nonlocal went
        while True:
            await gate.enter(1, Lane.BACKFILL, patience=600)  # type: ignore[attr-defined]
            went += 1

    tasks = [asyncio.create_task(ask()) for _ in range(3)]
    await works.turn(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return went


async def test_it_spends_no_more_than_what_is_left(works: Works) -> None:
    gate = works.gate(1200, 0.8)
    await works.rest(gate)
    # Somebody else uses the same app: of Microsoft's minute there is less left than we would use.
    await gate.passed(Remaining(limit=1200, left=124, reset_ms=20_000))
    assert 90 <= await spent_in(works, gate, 20) <= 100
    assert await spent_in(works, gate, 10) > 140, "the minute after it is its own"


async def test_of_several_answers_the_least_that_is_left_counts(works: Works) -> None:
    gate = works.gate(1200, 0.8)
    await works.rest(gate)
    for left in (130, 74, 110):
        await gate.passed(Remaining(limit=1200, left=left, reset_ms=20_000))
    assert 40 <= await spent_in(works, gate, 20) <= 50


async def test_with_nothing_left_it_waits_for_the_reset(works: Works) -> None:
    gate = works.gate(1200, 0.8)
    await works.rest(gate)
    await gate.passed(Remaining(limit=1200, left=0, reset_ms=30_000))
    with pytest.raises(Throttled) as caught:
        await gate.enter(1, Lane.CHANGES)
    assert caught.value.seconds == 30.0
    works.clock.turn(seconds=30.1)
    await gate.enter(1, Lane.CHANGES)


async def test_plenty_left_changes_nothing(works: Works) -> None:
    gate = works.gate(1200, 0.8)
    await works.rest(gate)
    await spent_in(works, gate, 10)
    await gate.passed(Remaining(limit=1200, left=240, reset_ms=2_000))
    assert await spent_in(works, gate, 10) >= 155


async def test_a_lower_limit_than_ours_is_believed(works: Works) -> None:
    gate = works.gate(6000, 0.8)
    await works.rest(gate)
    await gate.passed(Remaining(limit=600, left=600, reset_ms=1))
    await spent_in(works, gate, 5)
    assert 70 <= await spent_in(works, gate, 10) <= 85, "0.8 of 600 a minute"


# --- the day -----------------------------------------------------------------------------------


async def test_a_day_has_a_budget_too_and_keeps_some_for_changes(works: Works) -> None:
    clock = HurriedClock()
    gate = works.gate(60_000, 0.5, day=2_000, clock=clock)
    used = 0
    for lane in (Lane.VERIFY, Lane.BACKFILL, Lane.CHANGES):
        until = round(1_000 * DAY_PART[lane])
        for _ in range(used, until, 20):
            await gate.enter(20, lane)
        used = until
        with pytest.raises(Throttled, match="in a day") as caught:
            await gate.enter(20, lane)
        assert 0 < caught.value.seconds <= 25 * 3600
    assert (await gate.count()).used_day == 1_000
    clock.advance(25 * 3600)
    await gate.enter(20, Lane.VERIFY)


# --- how it stands -----------------------------------------------------------------------------


async def test_it_tells_what_is_used_and_who_waits(works: Works) -> None:
    gate = works.gate(60)
    spent = await works.drain(gate)
    tasks = [asyncio.create_task(gate.enter(5, lane)) for lane in (Lane.VERIFY, Lane.RETRIES) * 3]
    await works.turn(1.2)
    found = await gate.count()
    assert (found.used_minute, found.used_day, found.closed_ms) == (spent, spent, 0)
    assert dict(found.waiting) == {Lane.RETRIES: 3, Lane.VERIFY: 3}
    assert found.is_shared is (works.url is not None)
    await gate.close(90)
    assert (await gate.count()).closed_ms == 90_000
    await works.turn(1.5)
    await asyncio.gather(*tasks, return_exceptions=True)
    works.clock.turn(seconds=61)
    assert (await gate.count()).used_minute == 0

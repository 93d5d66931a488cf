"""One budget in a Redis that goes away, comes back empty, and is asked by many."""

import asyncio
import random
from collections.abc import AsyncIterator

import pytest
import redis

from drivefeed.domain.budget import Budget, Lane, Remaining
from drivefeed.domain.errors import Throttled
from drivefeed.sources.graph.budget import Ticket
from drivefeed.sources.graph.budget_book import LocalBook
from drivefeed.sources.graph.budget_shared import (
    KNOWN_AFTER_MS,
    NEWCOMER,
    TRIED_AGAIN_MS,
    SharedBook,
)
from support.gates import Works, works_of
from support.valkey import ValkeyServer, own_valkey, valkey_server, valkey_url

__all__ = ["own_valkey", "valkey_server", "valkey_url"]

BUDGET = Budget(1200, share=0.5)


@pytest.fixture
async def works(valkey_url: str) -> AsyncIterator[Works]:
    async with works_of(valkey_url) as found:
        yield found


def shared(works: Works, budget: Budget = BUDGET, member: str = "") -> SharedBook:
    book = works.book(budget, member=member)
    assert isinstance(book, SharedBook)
    return book


def ticket(name: str, lane: Lane = Lane.CHANGES, cost: int = 1) -> Ticket:
    return Ticket(name, lane, cost)


async def spend_all(book: SharedBook) -> int:
    """Spend until the book refuses; return how many units that were."""
    went = 0
    while (await book.ask(ticket("all"))).go:
        went += 1
    return went


# --- sharing -----------------------------------------------------------------------------------


async def test_processes_spend_from_one_budget_and_close_for_each_other(works: Works) -> None:
    gates = [works.gate(1200, 0.5) for _ in range(3)]
    await works.rest(gates[0])
    went = [0, 0, 0]

    async def greedy(which: int) -> None:
        while True:
            await gates[which].enter(1, Lane.BACKFILL)
            went[which] += 1

    tasks = [asyncio.create_task(greedy(which)) for which in range(3)]
    await works.turn(30)
    assert 390 <= sum(went) <= 402, "a burst of 100, and ten a second"
    assert min(went) >= 100, "none is left behind"
    await gates[2].close(60)
    before = sum(went)
    await works.turn(2)
    assert sum(went) == before
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(result, Throttled)


async def test_an_urgent_request_of_one_process_overtakes_the_line_of_another(
    works: Works,
) -> None:
    slow, quick = works.gate(120, 0.5), works.gate(120, 0.5)
    await slow.enter(5, Lane.CHANGES)
    backfill = [asyncio.create_task(slow.enter(1, Lane.BACKFILL)) for _ in range(20)]
    await works.turn(2.5)
    before = sum(task.done() for task in backfill)
    change = asyncio.create_task(quick.enter(1, Lane.CHANGES))
    await works.until(change.done, most=3)
    assert sum(task.done() for task in backfill) <= before + 1
    for task in backfill:
        task.cancel()
    await asyncio.gather(*backfill, return_exceptions=True)


async def test_the_servers_clock_counts_whatever_ours_says(works: Works, valkey_url: str) -> None:
    book = shared(works, Budget(60_000, share=1.0))
    book._follows_clock = False
    works.clock.turn(days=300)
    await spend_all(book)
    deadline = asyncio.get_running_loop().time() + 20
    while not (await book.ask(ticket("later", cost=5))).go:
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.005)


async def test_keys_carry_the_prefix_stay_together_and_end_by_themselves(
    works: Works, valkey_url: str
) -> None:
    book = shared(works)
    for _ in range(40):
        await book.ask(ticket("one"))
    await book.close(1000, 0.5)
    with redis.Redis.from_url(valkey_url, decode_responses=True) as client:
        keys = set(client.scan_iter())
        assert keys == {
            f"{{test:graph:tenant:app}}:{name}" for name in ("book", "line", "spent", "members")
        } - ({"{test:graph:tenant:app}:line"} - keys)
        assert all(0 < client.pttl(key) <= 26 * 3_600_000 for key in keys)


async def test_the_two_books_say_the_same(works: Works) -> None:  # noqa: C901 (one walk)
    """Whatever happens, in memory and in Redis."""
    for seed in range(12):
        chance = random.Random(seed)
        works.clock.turn(days=2)
        budget = Budget(chance.choice([60, 600, 6000]), 0, chance.choice([0.3, 0.8]))
        both = [LocalBook(budget, works.clock, is_full=False), shared(works, budget)]
        both[1]._keys = [f"{key}:{seed}" for key in both[1]._keys]  # type: ignore[attr-defined]
        await both[1].close(0, 0.5)
        await both[0].close(0, 0.5)
        waiting: dict[str, list[Ticket]] = {}
        for step in range(120):
            works.clock.turn(ms=chance.choice([0, 3, 40, 700, 5000]))
            kind = chance.choices(["ask", "again", "close", "passed", "leave"], [6, 8, 1, 2, 1])[0]
            if kind == "ask" or (kind in {"again", "leave"} and not waiting):
                lane, cost = chance.choice(list(Lane)), chance.choice([1, 1, 2, 5])
                waiting[f"t{step}"] = [Ticket(f"t{step}", lane, cost) for _ in both]
                kind, name = "again", f"t{step}"
            elif waiting:
                name = chance.choice(sorted(waiting))
            if kind == "again":
                said = [await book.ask(one) for book, one in zip(both, waiting[name], strict=True)]
                assert abs(said[0].wait_ms - said[1].wait_ms) <= 1, (seed, step, said)
                assert (said[0].go, said[0].why) == (said[1].go, said[1].why), (seed, step, said)
                for one, verdict in zip(waiting[name], said, strict=True):
                    one.since = verdict.since
                if said[0].go:
                    del waiting[name]
            elif kind == "leave":
                for book, one in zip(both, waiting.pop(name), strict=True):
                    await book.leave(one)
            elif kind == "close":
                told = chance.choice([None, 200, 4000])
                closed = [await book.close(told, 0.5) for book in both]
                assert closed[0] == closed[1], (seed, step)
            else:
                left = Remaining(chance.choice([0, 500]), chance.choice([20, 90]), 1500)
                for book in both:
                    await book.passed(left)
            counts = [await book.count() for book in both]
            assert counts[0].used_minute == counts[1].used_minute, (seed, step)
            assert counts[0].closed_ms == counts[1].closed_ms, (seed, step)
            assert dict(counts[0].waiting) == dict(counts[1].waiting), (seed, step)


# --- a Redis that forgets ----------------------------------------------------------------------


async def test_an_emptied_redis_starts_small_and_is_told_of_the_closure(
    works: Works, valkey_server: ValkeyServer
) -> None:
    one, two = shared(works), shared(works)
    await one.close(60_000, 0.5)
    assert (await two.ask(ticket("two"))).why == "closed"
    valkey_server.flush()
    works.clock.turn(seconds=10)
    said = await two.ask(ticket("again"))
    assert (said.go, said.why) == (False, "closed")
    assert 49_000 <= said.wait_ms <= 50_000
    stranger = shared(works)
    assert (await stranger.ask(ticket("stranger"))).why == "closed", "it was written back"
    works.clock.turn(seconds=50)
    assert await spend_all(two) == 0, "no burst"
    valkey_server.flush()
    assert await spend_all(two) == 5, "enough for one request of any kind"


async def test_a_forgotten_script_is_sent_again(works: Works, valkey_url: str) -> None:
    book = shared(works)
    assert (await book.ask(ticket("one"))).go
    with redis.Redis.from_url(valkey_url) as client:
        client.script_flush()
    assert (await book.ask(ticket("two"))).go
    assert (await book.count()).is_shared


# --- a Redis that is away ----------------------------------------------------------------------


@pytest.fixture
async def own(own_valkey: ValkeyServer) -> AsyncIterator[tuple[Works, ValkeyServer]]:
    async with works_of(own_valkey.url) as found:
        yield found, own_valkey


async def test_without_redis_the_parts_of_all_add_up_to_less_than_the_share(
    own: tuple[Works, ValkeyServer],
) -> None:
    works, server = own
    known = [shared(works) for _ in range(3)]
    for _ in range(3):
        for book in known:
            await book.ask(ticket("known"))
        works.clock.turn(ms=KNOWN_AFTER_MS // 2)
    late = shared(works)
    await late.ask(ticket("late"))
    for book in known:
        await book.ask(ticket("known"))
    never = shared(works)
    server.kill()
    everybody = [*known, late, never]
    for book in everybody:
        assert not (await book.count()).is_shared
    assert [book.fraction for book in known] == [1 / 5] * 3
    assert [book.fraction for book in (late, never)] == [NEWCOMER] * 2
    went = 0
    for _ in range(120):
        works.clock.turn(ms=250)
        for number, book in enumerate(everybody):
            while (await book.ask(ticket(f"{number}", Lane.BACKFILL))).go:
                went += 1
    assert 150 <= went <= 300, "of 600 a minute that is our share"


async def test_what_was_spent_and_told_without_redis_is_written_back(
    own: tuple[Works, ValkeyServer],
) -> None:
    works, server = own
    book = shared(works)
    for _ in range(2):
        await book.ask(ticket("one"))
        works.clock.turn(ms=KNOWN_AFTER_MS)
    await book.ask(ticket("one"))
    server.kill()
    went = 3
    for _ in range(20):
        works.clock.turn(ms=300)
        went += (await book.ask(ticket("alone"))).go
    assert went > 15
    assert await book.close(90_000, 0.5) == 90_000
    with_closure = await book.ask(ticket("closed"))
    assert (with_closure.go, with_closure.why) == (False, "closed")
    server.start()
    works.clock.turn(ms=TRIED_AGAIN_MS + 1)
    assert (await book.ask(ticket("back"))).why == "closed"
    stranger = await shared(works).count()
    assert stranger.is_shared
    assert stranger.used_day == went
    assert 84_000 <= stranger.closed_ms <= 85_000


async def test_a_silent_redis_costs_two_seconds_once(own: tuple[Works, ValkeyServer]) -> None:
    works, server = own
    book = shared(works)
    await book.ask(ticket("one"))
    server.freeze()
    try:
        calls = 0
        inner = book._script

        class Counting:
            async def __call__(self, *args: object) -> object:
                nonlocal calls
                calls += 1
                return await inner(*args)  # type: ignore[arg-type]

        book._script = Counting()  # type: ignore[assignment]
        for _ in range(50):
            await book.ask(ticket("alone"))
        assert calls == 1
    finally:
        server.thaw()

"""The outbox: numbers, claims, who is sent first, and what happens when somebody dies."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog import deliveries, deliveries_sent, heartbeats, reminders, sole_process
from drivefeed.catalog.connecting import ensure_org
from drivefeed.ports import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from support.clock import ManualClock

_HORIZON = 60_000


class Outbox:
    """The outbox in few words."""

    def __init__(self, catalog: Catalog, orgs: list[str]) -> None:
        self.catalog = catalog
        self.orgs = orgs

    @property
    def now(self) -> int:
        return self.catalog.clock.now()

    @asynccontextmanager
    async def write(self) -> AsyncIterator[AsyncConnection]:
        async with self.catalog.write() as connection:
            yield connection

    async def put(
        self, subject: str, stage: str = "transfer", *, after: int = 0, org: int = 0, lane: int = 1
    ) -> None:
        async with self.write() as connection:
            await reminders.put(
                connection,
                subject_id=subject,
                org_id=self.orgs[org],
                stage=stage,
                due_at=self.now + after,
                payload={"import_id": subject},
                lane=lane,
            )

    async def due(self, stage: str = "transfer", limit: int = 100) -> list[deliveries.Reminder]:
        async with self.catalog.read() as connection:
            return await deliveries.due(
                connection, stage, now=self.now, horizon_ms=_HORIZON, limit=limit
            )

    async def names(self, stage: str = "transfer", limit: int = 100) -> list[str]:
        return [one.subject_id for one in await self.due(stage, limit)]

    async def send(self) -> list[deliveries.Reminder]:
        sent = await self.due()
        async with self.write() as connection:
            await deliveries.mark_sent(connection, sent, now=self.now, remind_at=self.now + 15_000)
        return sent

    async def overdue(self) -> list[str]:
        async with self.catalog.read() as connection:
            found = await deliveries_sent.overdue(connection, now=self.now, limit=10)
        return [one.subject_id for one in found]

    async def claim(
        self, subject: str, number: int, owner: str = "me", busy_ms: int = 60_000
    ) -> reminders.Claim | None:
        async with self.write() as connection:
            return await reminders.claim(
                connection,
                subject_id=subject,
                number=number,
                owner=owner,
                now=self.now,
                busy_ms=busy_ms,
            )

    async def number(self, subject: str) -> int | None:
        async with self.catalog.write() as connection:
            return await reminders.number_of(connection, subject)


@pytest.fixture
async def outbox(catalog: Catalog) -> Outbox:
    return Outbox(catalog, [await ensure_org(catalog, name) for name in "abc"])


async def test_each_writing_has_a_number_of_its_own(outbox: Outbox) -> None:
    await outbox.put("x")
    assert await outbox.number("x") == 1
    await outbox.put("x", "submit")
    assert await outbox.number("x") == 2
    assert await outbox.names("transfer") == []
    (one,) = await outbox.due("submit")
    assert (one.number, one.payload) == (2, {"import_id": "x"})
    assert await outbox.number("unknown") is None


async def test_a_delivery_with_an_older_number_does_nothing(outbox: Outbox) -> None:
    await outbox.put("x")
    await outbox.put("x")
    assert await outbox.claim("x", 1) is None
    claim = await outbox.claim("x", 2)
    assert claim is not None
    assert (claim.stage, claim.starts) == ("transfer", 1)


async def test_what_is_sent_is_not_sent_again(outbox: Outbox) -> None:
    await outbox.put("x")
    assert len(await outbox.send()) == 1
    assert await outbox.due() == []


async def test_a_row_that_was_written_while_it_was_being_sent_stays_unsent(outbox: Outbox) -> None:
    await outbox.put("x")
    sent = await outbox.due()
    await outbox.put("x")
    async with outbox.write() as connection:
        await deliveries.mark_sent(connection, sent, now=outbox.now, remind_at=outbox.now)
    assert [one.number for one in await outbox.due()] == [2]


async def test_what_somebody_works_on_is_neither_claimed_nor_sent(
    outbox: Outbox, clock: ManualClock
) -> None:
    await outbox.put("x")
    claim = await outbox.claim("x", 1)
    assert claim is not None
    assert await outbox.claim("x", 1, "other") is None
    await outbox.put("x", "submit")
    assert await outbox.names("submit") == []
    async with outbox.write() as connection:
        await reminders.release(connection, claim)
    assert await outbox.names("submit") == ["x"]
    clock.turn(seconds=1)


async def test_a_claim_runs_out_unless_it_is_renewed(outbox: Outbox, clock: ManualClock) -> None:
    await outbox.put("x")
    claim = await outbox.claim("x", 1, busy_ms=1_000)
    assert claim is not None
    async with outbox.write() as connection:
        assert await reminders.renew(connection, claim, busy_until=outbox.now + 5_000)
    clock.turn(ms=5_000)
    assert await outbox.claim("x", 1, "other") is None
    clock.turn(ms=1)
    other = await outbox.claim("x", 1, "other")
    assert other is not None
    assert other.starts == 2
    async with outbox.write() as connection:
        assert not await reminders.renew(connection, claim, busy_until=outbox.now + 5_000)
        await reminders.release(connection, claim)
    assert await outbox.claim("x", 1, "third") is None, "the old claim releases nothing"


async def test_later_is_due_later_under_a_new_number(outbox: Outbox, clock: ManualClock) -> None:
    await outbox.put("x")
    await outbox.send()
    async with outbox.write() as connection:
        await reminders.postpone(connection, "x", due_at=outbox.now + _HORIZON + 1)
    assert await outbox.number("x") == 2
    assert await outbox.due() == []
    clock.turn(ms=1)
    (one,) = await outbox.due()
    assert one.due_at - clock.now() == _HORIZON, "it goes to the queue as a delayed job"


async def test_at_rest_nothing_is_due_and_the_number_is_kept(outbox: Outbox) -> None:
    await outbox.put("x")
    async with outbox.write() as connection:
        await reminders.rest(connection, "x")
        assert await reminders.stage_of(connection, "x") is None
    assert await outbox.due() == []
    assert await outbox.claim("x", 1) is not None, "a person may retry the delivery on the board"
    await outbox.put("x")
    assert await outbox.number("x") == 2


async def test_what_was_written_during_a_run_stays_due_when_the_run_ends(outbox: Outbox) -> None:
    await outbox.put("x")
    claim = await outbox.claim("x", 1)
    assert claim is not None
    await outbox.put("x")
    assert await outbox.names() == [], "somebody still works on it"
    async with outbox.write() as connection:
        await reminders.conclude(connection, claim, due_at=None)
    assert await outbox.names() == ["x"]
    claim = await outbox.claim("x", 2)
    assert claim is not None
    async with outbox.write() as connection:
        await reminders.conclude(connection, claim, due_at=None)
    assert await outbox.names() == []


async def test_deliveries_past_their_time_are_looked_for(
    outbox: Outbox, clock: ManualClock
) -> None:
    await outbox.put("x")
    await outbox.put("later", after=30_000)
    sent = await outbox.send()
    clock.turn(ms=14_999)
    assert await outbox.overdue() == []
    clock.turn(ms=1)
    assert await outbox.overdue() == ["x"]
    async with outbox.write() as connection:
        await deliveries_sent.keep_waiting(connection, [sent[0]], remind_at=outbox.now + 1_000)
    assert await outbox.overdue() == []
    clock.turn(ms=30_000)
    assert await outbox.overdue() == ["x", "later"]
    async with outbox.write() as connection:
        await deliveries_sent.send_again(connection, sent)
    assert await outbox.overdue() == []
    assert {one.number for one in await outbox.due()} == {2}


async def test_a_row_somebody_works_on_is_not_overdue(outbox: Outbox, clock: ManualClock) -> None:
    await outbox.put("x")
    await outbox.send()
    await outbox.claim("x", 1)
    clock.turn(ms=20_000)
    assert await outbox.overdue() == []


async def test_an_emptied_queue_makes_every_sent_row_due(outbox: Outbox) -> None:
    await outbox.put("x")
    await outbox.put("y")
    await outbox.send()
    await outbox.put("z")
    async with outbox.write() as connection:
        await reminders.rest(connection, "y")
        assert await deliveries_sent.unsend_all(connection) == 1
    assert sorted(await outbox.names()) == ["x", "z"]
    assert await outbox.number("x") == 1


async def test_rows_of_the_dead_are_due_again_at_once(outbox: Outbox, clock: ManualClock) -> None:
    catalog = outbox.catalog
    for owner in ("alive", "dead"):
        await heartbeats.beat(catalog, owner, "worker")
        await outbox.put(f"of {owner}")
    await outbox.send()
    for owner in ("alive", "dead"):
        assert await outbox.claim(f"of {owner}", 1, owner)
    clock.turn(ms=heartbeats.DEAD_AFTER_MS + 1)
    await heartbeats.beat(catalog, "alive", "worker")
    assert await heartbeats.alive(catalog) == ["alive"]
    assert await heartbeats.reap(catalog, own="dead") == 0, "who asks is alive"
    assert await heartbeats.reap(catalog, own="alive") == 1
    assert await heartbeats.reap(catalog, own="alive") == 0
    assert await outbox.names() == ["of dead"]
    claim = await outbox.claim("of dead", 2)
    assert claim is not None
    assert claim.starts == 2, "starts count crashes"


async def test_the_dead_do_not_take_a_retried_row_with_them(outbox: Outbox) -> None:
    await outbox.put("x")
    async with outbox.write() as connection:
        await reminders.rest(connection, "x")
    await outbox.claim("x", 1, "dead")
    assert (await sole_process.take(outbox.catalog, "next", "up", dead=frozenset())).freed == 1
    assert await outbox.names() == ["x"]


async def test_the_dead_keep_no_lease_from_who_comes_after_them(outbox: Outbox) -> None:
    catalog = outbox.catalog
    await heartbeats.beat(catalog, "dead", "up")
    await heartbeats.beat(catalog, "another role", "web")
    for name, owner in (("recovery", "dead"), ("tokens", "another role"), ("x", "a command")):
        assert await heartbeats.take_lease(catalog, name, owner, for_ms=60_000) == 1
    await sole_process.take(catalog, "next", "up", dead=frozenset())
    assert await heartbeats.take_lease(catalog, "recovery", "next", for_ms=60_000) == 2
    assert await heartbeats.take_lease(catalog, "tokens", "next", for_ms=60_000) is None
    assert await heartbeats.take_lease(catalog, "x", "next", for_ms=60_000) is None


async def test_a_stage_handed_back_is_due_at_once_and_counts_as_no_start(outbox: Outbox) -> None:
    await outbox.put("x")
    claim = await outbox.claim("x", 1)
    assert claim is not None
    async with outbox.write() as connection:
        await reminders.hand_back(connection, claim, now=outbox.now)
    again = await outbox.claim("x", 2)
    assert again is not None
    assert again.starts == 1


async def test_leaving_frees_the_rows_of_the_process_that_leaves(outbox: Outbox) -> None:
    await heartbeats.beat(outbox.catalog, "me", "worker")
    await outbox.put("x")
    await outbox.claim("x", 1, "me")
    assert await heartbeats.leave(outbox.catalog, "me") == 1
    assert await outbox.names() == ["x"]


async def test_orgs_take_turns_and_fresh_changes_go_first(outbox: Outbox) -> None:
    for number in range(4):
        await outbox.put(f"a{number}", after=number, org=0)
    await outbox.put("b0", after=50, org=1)
    await outbox.put("c0", after=60, org=2)
    await outbox.put("c-fresh", after=99, org=2, lane=reminders.LANE_FRESH)
    # By then, the third org has had its first turn.
    assert await outbox.names() == ["c-fresh", "a0", "b0", "a1", "c0", "a2", "a3"]
    assert await outbox.names(limit=3) == ["c-fresh", "a0", "b0"]
    assert await outbox.names(limit=1) == ["c-fresh"]


async def test_whoever_has_the_fewest_in_the_queue_is_next(outbox: Outbox) -> None:
    for number in range(4):
        await outbox.put(f"a{number}", after=number, org=0)
    for expected in ("a0", "a1"):
        (one,) = await outbox.due(limit=1)
        assert one.subject_id == expected
        async with outbox.write() as connection:
            sent = {"now": outbox.now, "remind_at": outbox.now + 15_000}
            await deliveries.mark_sent(connection, [one], **sent)
    await outbox.put("b0", after=50, org=1)
    # Its file is younger than all that wait, and it has waited for none of them.
    assert await outbox.names(limit=1) == ["b0"]
    assert [one.turn for one in await outbox.due()] == [0, 2, 3]


async def test_rows_due_later_and_orgs_that_hold_can_be_left_out(outbox: Outbox) -> None:
    await outbox.put("now", org=0)
    await outbox.put("later", after=1_000, org=0)
    await outbox.put("b-fresh", org=1, lane=reminders.LANE_FRESH)
    await outbox.put("b", org=1)
    org_id = (await outbox.due())[0].org_id
    async with outbox.catalog.read() as connection:
        asked = {"now": outbox.now, "horizon_ms": _HORIZON, "limit": 9}
        later = await deliveries.due(connection, Stage.TRANSFER, after=outbox.now, **asked)
        held = {reminders.LANE_BACKFILL: [org_id]}
        others = await deliveries.due(connection, Stage.TRANSFER, held=held, **asked)
    assert [one.subject_id for one in later] == ["later"]
    assert [one.subject_id for one in others] == ["b-fresh", "now", "later"]


async def test_stages_with_something_due(outbox: Outbox) -> None:
    async def stages() -> list[str]:
        async with outbox.catalog.read() as connection:
            return await deliveries.stages_due(connection, now=outbox.now, horizon_ms=_HORIZON)

    assert await stages() == []
    await outbox.put("x")
    await outbox.put("y", "withdraw", after=_HORIZON + 1)
    await outbox.put("z", "poll", lane=0)
    assert await stages() == [Stage.TRANSFER, Stage.POLL]


async def test_the_term_of_a_lease_rises_with_its_holder(
    outbox: Outbox, clock: ManualClock
) -> None:
    async def take(owner: str) -> int | None:
        return await heartbeats.take_lease(outbox.catalog, "scheduler", owner, for_ms=1_000)

    assert await take("a") == 1
    assert await take("b") is None
    clock.turn(ms=900)
    assert await take("a") == 1, "renewed"
    clock.turn(ms=900)
    assert await take("b") is None
    clock.turn(ms=101)
    assert await take("b") == 2
    assert await take("a") is None

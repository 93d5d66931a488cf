"""Two processes write at once: what one writer at a time gives SQLite, row locks give Postgres.

Each test opens two catalogs over one database, as two processes do, and lets both do the same
thing at the same time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from drivefeed.catalog import deliveries, heartbeats, pages, reminders
from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.imports import advance
from drivefeed.catalog.index_jobs import CatalogIndexJobs
from drivefeed.catalog.pages_rounds import begin_enumeration
from drivefeed.catalog.sources import wake_due_drives
from drivefeed.catalog.tables import drives, import_events, imports, orgs
from drivefeed.catalog.usage_tables import ledger
from drivefeed.catalog.waiting import again, park
from drivefeed.domain.lifecycle import Event
from drivefeed.domain.reasons import Reason
from drivefeed.ports import IndexJobState, Submission
from support.clock import CountedIds, ManualClock, no_checkpoint
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.reminders import Claim
    from drivefeed.domain.model import Import

_FILES = 6


@pytest.fixture
async def other(catalog: Catalog, catalog_url: str, clock: ManualClock) -> AsyncIterator[Catalog]:
    """The catalog of another process."""
    opened = await open_catalog(
        catalog_url, clock=clock, ids=CountedIds(seed=2), checkpoint=no_checkpoint
    )
    await asyncio.gather(*(_connect(one) for one in (catalog, opened) * 4))
    yield opened
    await opened.aclose()


async def _connect(catalog: Catalog) -> None:
    """Open a connection beforehand, so that it does not decide who comes first."""
    async with catalog.read():
        await asyncio.sleep(0.05)


@pytest.fixture
async def town(rig: Rig) -> Rig:
    files = [file(f"f{number}", "docs", f"c{number}") for number in range(_FILES)]
    await rig.enumerate([ROOT, folder("docs"), *files])
    return rig


async def _at_submitted(rig: Rig, item_id: str) -> Import:
    one = await rig.import_of(item_id)
    facts = {"size": 10, "sha256": f"sha-{item_id}", "integrity": "verified"}
    one = await rig.advance(one, Event.STORED, facts=facts)
    one = await rig.advance(one, Event.SUBMITTING)
    return await rig.advance(one, Event.ACCEPTED, facts={"backend_job": "job"})


async def _claim(catalog: Catalog, subject_id: str, number: int, owner: str) -> Claim | None:
    async with catalog.write("claim", beside=True) as connection:
        return await reminders.claim(
            connection,
            subject_id=subject_id,
            number=number,
            owner=owner,
            now=catalog.clock.now(),
            busy_ms=60_000,
        )


async def test_a_page_is_applied_by_one_of_two(rig: Rig, other: Catalog) -> None:
    drive = await begin_enumeration(rig.catalog, await rig.drive())
    page = rig.page([ROOT, folder("docs"), file("a", "docs"), file("b", "docs")], last=False)
    twice = await asyncio.gather(
        *(pages.apply_page(one, drive, page) for one in (rig.catalog, other, rig.catalog, other))
    )
    assert {one.pages_in_round for one in twice} == {1}
    assert {one.cursor for one in twice} == {page.next_link}
    assert len(await rig.rows(import_events, import_events.c.event == "admitted")) == 2
    assert await rig.wanted() == {"a": "1", "b": "1"}


async def test_settling_by_two_leaves_nothing_out_and_ends_once(rig: Rig, other: Catalog) -> None:
    await rig.enumerate([ROOT, folder("docs"), *(file(f"f{n}", "docs") for n in range(20))])
    await rig.apply([file(f"f{n}", "docs", "2") for n in range(20)])

    async def settle(catalog: Catalog) -> None:
        while await pages.settle_some(catalog, rig.drive_id):
            pass

    await asyncio.gather(settle(rig.catalog), settle(other))
    assert set((await rig.wanted()).values()) == {"2"}
    assert not (await rig.drive()).settling


async def test_two_settles_of_one_version_charge_once(town: Rig, other: Catalog) -> None:
    one = await _at_submitted(town, "f0")
    facts = {"pages": 7, "chunks": 3, "shown": True}
    done = await asyncio.gather(
        *(
            advance(each, one.import_id, Event.SETTLED, round_=1, facts=facts)
            for each in (town.catalog, other) * 3
        )
    )
    assert {each.state for each in done} == {"settled"}
    assert sorted(each.revision for each in done) == [one.revision + n for n in range(1, 7)]
    assert len(await town.rows(ledger)) == 1
    assert await town.pages_used() == 7


async def test_settles_of_many_versions_add_up(town: Rig, other: Catalog) -> None:
    ones = [await _at_submitted(town, f"f{number}") for number in range(_FILES)]
    await asyncio.gather(
        *(
            advance(
                (town.catalog, other)[number % 2],
                one.import_id,
                Event.SETTLED,
                round_=1,
                facts={"pages": number + 1, "shown": True},
            )
            for number, one in enumerate(ones)
        )
    )
    assert await town.pages_used() == sum(range(1, _FILES + 1))
    assert sum(row["pages"] for row in await town.rows(ledger)) == await town.pages_used()


async def test_facts_of_one_and_a_change_of_mind_of_another_are_both_kept(
    town: Rig, other: Catalog
) -> None:
    """A page brings a new version while the old one is being stored."""
    ones = [await town.import_of(f"f{number}") for number in range(_FILES)]
    drive = await town.drive()
    page = town.page([file(f"f{n}", "docs", f"new{n}") for n in range(_FILES)], last=True)

    async def follow() -> None:
        await pages.apply_page(other, drive, page)
        while await pages.settle_some(other, town.drive_id):
            pass

    await asyncio.gather(
        follow(),
        *(
            advance(
                town.catalog,
                one.import_id,
                Event.STORED,
                round_=1,
                facts={"sha256": one.import_id, "size": 1},
            )
            for one in ones
        ),
    )
    assert set((await town.wanted()).values()) == {f"new{n}" for n in range(_FILES)}
    for one in ones:
        (row,) = await town.rows(imports, imports.c.id == one.import_id)
        assert row["sha256"] == one.import_id
        # Whichever came first, the old version is on its way out.
        assert row["state"] == "withdrawing"
        assert await town.due(one.import_id) is not None


async def test_a_claim_is_had_by_one(town: Rig, other: Catalog) -> None:
    one = await town.import_of("f0")
    number = (await town.reminder(one.import_id))["number"]
    claims = await asyncio.gather(
        *(
            _claim(each, one.import_id, number, f"owner-{n}")
            for n, each in enumerate((town.catalog, other) * 4)
        )
    )
    assert len([each for each in claims if each is not None]) == 1
    assert (await town.reminder(one.import_id))["starts"] == 1


@pytest.mark.parametrize("ending", ["again", "park"])
async def test_an_outcome_does_not_undo_what_was_decided_beside_it(
    town: Rig, other: Catalog, ending: str
) -> None:
    """A stage ends with 'later' while somebody wants another version: the withdrawal stays due."""
    one = await town.import_of("f0")
    number = (await town.reminder(one.import_id))["number"]
    claim = await _claim(town.catalog, one.import_id, number, "me")
    assert claim is not None
    outcome = (
        again(town.catalog, claim, due_at=town.catalog.clock.now() + 10**9, hold=Reason.THROTTLED)
        if ending == "again"
        else park(town.catalog, claim, hold=Reason.OUT_OF_SCOPE)
    )
    await asyncio.gather(outcome, town_changes_its_mind(town, other))
    due = await town.due(one.import_id)
    assert due is not None
    assert due[0] == "withdraw"
    assert due[1] <= 0
    assert (await town.reminder(one.import_id))["owner"] is None


async def town_changes_its_mind(town: Rig, other: Catalog) -> None:
    await pages.apply_page(
        other, await town.drive(), town.page([file("f0", "docs", "other")], last=True)
    )
    while await pages.settle_some(other, town.drive_id):
        pass


async def test_two_relays_mark_every_row_and_wait_for_none(town: Rig, other: Catalog) -> None:
    now = town.catalog.clock.now()

    async def send(catalog: Catalog) -> int:
        async with catalog.read() as connection:
            due = await deliveries.due(connection, "transfer", now=now, horizon_ms=0, limit=50)
        async with catalog.write("relay", beside=True) as connection:
            await deliveries.mark_sent(connection, due[::-1], now=now, remind_at=now + 15_000)
        return len(due)

    sent = await asyncio.gather(send(town.catalog), send(other), send(town.catalog), send(other))
    assert max(sent) == _FILES
    async with town.catalog.read() as connection:
        left = await deliveries.due(connection, "transfer", now=now, horizon_ms=0, limit=50)
    assert left == []
    for number in range(_FILES):
        one = await town.import_of(f"f{number}")
        assert (await town.reminder(one.import_id))["number"] == 1


async def test_a_job_of_one_key_is_made_once_and_ends_once(town: Rig, other: Catalog) -> None:
    one = await _at_submitted(town, "f1")
    submission = Submission(
        key=f"{one.import_id}:1",
        org_id=one.org_id,
        document_id=one.document_id,
        import_id=one.import_id,
        round=1,
        seq=1,
        object_key="o/d/i/1",
        size=10,
        name="f1.txt",
        media_type="text/plain",
        folders=("docs",),
    )
    both = [CatalogIndexJobs(each) for each in (town.catalog, other)]
    made = await asyncio.gather(*(each.create(submission) for each in both * 3))
    assert len({each.job_id for each in made}) == 1
    assert (await town.reminder(made[0].job_id))["number"] == 1
    ended = await asyncio.gather(
        *(each.finish(made[0].job_id, IndexJobState.DONE, pages=1) for each in both * 3)
    )
    assert sorted(ended) == [False] * 5 + [True]


async def test_a_lease_has_one_holder_and_its_term_rises(
    catalog: Catalog, other: Catalog, clock: ManualClock
) -> None:
    for term in (1, 2, 3):
        terms = await asyncio.gather(
            heartbeats.take_lease(catalog, "x", f"a{term}", for_ms=1_000),
            heartbeats.take_lease(other, "x", f"b{term}", for_ms=1_000),
        )
        assert sorted(one or 0 for one in terms) == [0, term]
        clock.turn(ms=1_001)


async def test_the_dead_are_freed_once(town: Rig, other: Catalog, clock: ManualClock) -> None:
    one = await town.import_of("f0")
    await heartbeats.beat(town.catalog, "dead", "worker")
    assert await _claim(town.catalog, one.import_id, 1, "dead")
    clock.turn(ms=heartbeats.DEAD_AFTER_MS + 1)
    freed = await asyncio.gather(
        heartbeats.reap(town.catalog, own="me"), heartbeats.reap(other, own="you")
    )
    assert sorted(freed) == [0, 1]
    assert (await town.reminder(one.import_id))["number"] == 2


async def test_two_schedulers_wake_a_drive_once(town: Rig, other: Catalog) -> None:
    async with town.catalog.write() as connection:
        await connection.execute(update(drives).values(last_round_at=None))
        await reminders.rest(connection, town.drive_id)
    before = (await town.reminder(town.drive_id))["number"]
    await asyncio.gather(wake_due_drives(town.catalog), wake_due_drives(other))
    assert (await town.reminder(town.drive_id))["number"] == before + 1


async def test_counters_under_everything_at_once(town: Rig, other: Catalog) -> None:
    """Who is alone and who is beside others wait for each other; no update is lost."""

    async def add(catalog: Catalog, *, beside: bool) -> None:
        async with catalog.write(beside=beside) as connection:
            if beside:
                change = update(orgs).values(pages_used=orgs.c.pages_used + 1)
                await connection.execute(change)
                return
            # It reads first and writes then, as everything may that is alone.
            used = (await connection.execute(orgs.select())).mappings().one()["pages_used"]
            await asyncio.sleep(0)
            await connection.execute(update(orgs).values(pages_used=used + 1))

    await asyncio.gather(
        *(
            add(each, beside=beside)
            for each in (town.catalog, other)
            for beside in (True, False)
            for _ in range(5)
        )
    )
    assert await town.pages_used() == 20

"""What is old and of no use goes; what money, a retry or a person hangs on stays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import insert, select, update

import drivefeed.catalog.access_tables
import drivefeed.catalog.tables
from drivefeed.catalog import retention
from drivefeed.catalog.columns import metadata
from drivefeed.catalog.heartbeats import beat, take_lease
from drivefeed.catalog.index_jobs import CatalogIndexJobs
from drivefeed.catalog.tables import (
    heartbeats,
    import_events,
    imports,
    index_jobs,
    reminders,
)
from drivefeed.catalog.usage_tables import ledger
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.notices import DAY_MS
from drivefeed.ports import IndexJobState, Submission
from drivefeed.services.retention import PASS_EVERY_MS, Ages, Retention
from unit.catalog.rig import ROOT, Rig, file, folder, gone

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Import
    from support.clock import ManualClock

AGES = Ages(
    events=90 * DAY_MS,
    ends=730 * DAY_MS,
    index_jobs=30 * DAY_MS,
    notices=90 * DAY_MS,
    sessions=7 * DAY_MS,
    heartbeats=DAY_MS,
)
PRUNED = {"import_events", "index_jobs", "notices", "notice_deliveries", "api_keys", "heartbeats"}


@pytest.fixture
def pruning(catalog: Catalog) -> Retention:
    return Retention(catalog, AGES, owner="me")


async def submitted(catalog: Catalog, one: Import) -> str:
    """Remember the embedded backend's job of a round, done."""
    jobs = CatalogIndexJobs(catalog)
    key = f"{one.import_id}:{one.round}"
    job = await jobs.create(
        Submission(
            key=key,
            org_id=one.org_id,
            document_id=one.document_id,
            import_id=one.import_id,
            round=one.round,
            seq=1,
            object_key="key",
            size=1,
            name="a",
            media_type=None,
        )
    )
    await jobs.finish(job.job_id, IndexJobState.DONE, pages=1, chunks=1)
    return key


async def events(rig: Rig, one: Import) -> list[tuple[int, str]]:
    rows = await rig.rows(import_events, import_events.c.import_id == one.import_id)
    return [(row["round"], row["event"]) for row in rows]


async def whole_pass(pruning: Retention) -> None:
    while await pruning.tick():
        pass


async def test_a_version_that_is_gone_keeps_its_charge_its_key_and_its_number(
    rig: Rig, clock: ManualClock, pruning: Retention
) -> None:
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs"), file("b", "docs")])
    stays, leaves = await rig.bring_live("a"), await rig.bring_live("b")
    keys = [await submitted(rig.catalog, one) for one in (stays, leaves)]
    await rig.round(gone("b"))
    clock.turn(days=8)
    await rig.withdraw(leaves)
    async with rig.catalog.write() as connection:
        await connection.execute(update(imports).values(detail="words"))
    before = {
        name: await rig.rows(table)
        for name, table in metadata.tables.items()
        if name not in PRUNED | {"facts", "leases", "imports"}
    }
    everything = {one.import_id: await events(rig, one) for one in (stays, leaves)}

    clock.turn(days=91)
    await whole_pass(pruning)
    # Steps are gone; how it ended, and what it was charged for, are told.
    assert await events(rig, leaves) == [(1, Event.SETTLED), (1, Event.REMOVED)]
    assert await events(rig, stays) == everything[stays.import_id]
    assert [row["key"] for row in await rig.rows(index_jobs)] == keys[:1]

    clock.turn(days=730)
    await whole_pass(pruning)
    assert await events(rig, leaves) == [(1, Event.SETTLED)]
    assert await events(rig, stays) == everything[stays.import_id]
    words = {row["id"]: row["detail"] for row in await rig.rows(imports)}
    assert words == {stays.import_id: "words", leaves.import_id: None}
    rounds = {row["id"]: (row["state"], row["round"]) for row in await rig.rows(imports)}
    assert rounds[leaves.import_id] == (State.WITHDRAWN, 1)
    after = {name: await rig.rows(metadata.tables[name]) for name in before}
    assert after == before
    assert len(before["ledger"]) == len(await rig.rows(ledger)) == 2
    # The numbers of both imports and of both jobs.
    assert len(await rig.rows(reminders, reminders.c.stage.in_(["index", "withdraw"]))) == 3


async def test_steps_of_an_earlier_round_go_and_those_of_the_present_one_stay(
    rig: Rig, clock: ManualClock, pruning: Retention
) -> None:
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs")])
    one = await rig.bring_live("a")
    await rig.round(gone("a"))
    clock.turn(days=8)
    await rig.withdraw(one)
    await rig.round([file("a", "docs")])
    again = await rig.bring_live("a")
    assert (again.import_id, again.round) == (one.import_id, 2)
    present = [found for found in await events(rig, one) if found[0] == 2]
    clock.turn(days=91)
    await whole_pass(pruning)
    kept = await events(rig, one)
    assert [found for found in kept if found[0] == 2] == present
    assert [found for found in kept if found[0] == 1] == [(1, Event.SETTLED), (1, Event.REMOVED)]


async def test_a_pass_is_made_of_chunks_and_comes_once_a_day(
    rig: Rig, clock: ManualClock, pruning: Retention, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "CHUNK", 3)
    monkeypatch.setattr("drivefeed.services.retention.CHUNKS_A_TICK", 2)
    await rig.enumerate([ROOT, folder("docs"), *(file(str(n), "docs") for n in range(4))])
    for number in range(4):
        await rig.bring_live(str(number))
    count = len(await rig.rows(import_events))
    clock.turn(days=91)
    ticks = 1
    while await pruning.tick():
        ticks += 1
    # Everything is live, so that nothing went; all of it was looked at, a little at each tick.
    assert ticks >= count // 6
    assert len(await rig.rows(import_events)) == count
    said = await retention.last_pass(rig.catalog)
    assert said is not None
    assert said[0] == clock.now()
    assert not any(said[1].values())
    assert not await pruning.tick()
    clock.turn(ms=PASS_EVERY_MS)
    assert await pruning.tick()


async def test_only_one_of_several_does_it(
    rig: Rig, clock: ManualClock, pruning: Retention
) -> None:
    assert await take_lease(rig.catalog, "retention", "another", for_ms=60_000)
    assert not await pruning.tick()
    assert await retention.last_pass(rig.catalog) is None
    clock.turn(ms=61_000)
    await whole_pass(pruning)
    assert await retention.last_pass(rig.catalog) is not None
    # Whoever looks next finds it done, and the lease free.
    await whole_pass(Retention(rig.catalog, AGES, owner="another"))
    async with rig.catalog.read() as connection:
        until = await connection.scalar(select(drivefeed.catalog.tables.leases.c.until))
    assert until == 0


async def test_the_dead_are_forgotten_unless_they_hold_something(
    rig: Rig, clock: ManualClock, pruning: Retention
) -> None:
    for owner in ("idle", "busy"):
        await beat(rig.catalog, owner, "worker")
    async with rig.catalog.write() as connection:
        await connection.execute(update(reminders).values(owner="busy"))
    clock.turn(days=2)
    await beat(rig.catalog, "me", "up")
    await whole_pass(pruning)
    assert {row["owner"] for row in await rig.rows(heartbeats)} == {"busy", "me"}


async def test_ended_sessions_go_and_revoked_keys_stay(
    rig: Rig, clock: ManualClock, pruning: Retention
) -> None:
    keys = drivefeed.catalog.access_tables.api_keys

    def row(name: str, **more: Any) -> dict[str, Any]:
        plain = {"is_link": False, "is_session": False, "revoked_at": None, "expires_at": None}
        named = {"id": name, "org_id": rig.org_id, "name": name, "hash": name, "prefix": name}
        return named | plain | {"scopes": "read", "created_at": clock.now()} | more

    now = clock.now()
    async with rig.catalog.write() as connection:
        await connection.execute(
            insert(keys),
            [
                row("key", revoked_at=now),
                row("link", is_link=True, expires_at=now),
                row("session", is_session=True, revoked_at=now),
                row("open", is_session=True, expires_at=now + 30 * DAY_MS),
            ],
        )
    clock.turn(days=8)
    await whole_pass(pruning)
    assert {one["id"] for one in await rig.rows(keys)} == {"key", "open"}


def test_every_table_is_either_pruned_or_kept_for_a_reason() -> None:
    assert set(metadata.tables) == PRUNED | set(retention.KEPT)
    assert not PRUNED & set(retention.KEPT)

"""Questions that are asked all the time read an index, not the table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event, text

from drivefeed.catalog import deliveries, deliveries_sent, heartbeats, leaving, reminders, tree
from drivefeed.catalog.gate import COUNTED_BACKLOG
from drivefeed.catalog.sources import wake_due_drives
from drivefeed.catalog.tables import reminders as reminder_rows
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy.ext.asyncio import AsyncConnection


async def _plans(
    rig: Rig, ask: Callable[[AsyncConnection], Awaitable[Any]], *, is_small: bool = True
) -> list[str]:
    """Run a question and return the plan lines of each statement it made.

    Args:
        is_small: whether the tables are, which Postgres would read whole.
    """
    said: list[tuple[str, Any]] = []

    def listen(*args: Any) -> None:
        said.append((args[2], args[3]))

    async with rig.catalog.write() as connection:
        sync = connection.sync_connection
        assert sync is not None
        event.listen(sync, "before_cursor_execute", listen)
        await ask(connection)
        event.remove(sync, "before_cursor_execute", listen)
        if connection.dialect.name != "sqlite":
            await connection.exec_driver_sql("ANALYZE orgs, items, coverage, reminders")
            await connection.exec_driver_sql(f"SET LOCAL enable_seqscan = {not is_small}")
        plans = []
        for statement, parameters in said:
            if not isinstance(parameters, list):
                plans += await _explained(connection, statement, parameters)
    return plans


async def _explained(connection: AsyncConnection, statement: str, parameters: Any) -> list[str]:
    if connection.dialect.name == "sqlite":
        rows = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
        return [str(row[3]) for row in rows]
    rows = await connection.exec_driver_sql(f"EXPLAIN {statement}", parameters)
    lines = [str(row[0]) for row in rows]
    return [line.replace("Seq Scan on", "SCAN") for line in lines]


async def _due(connection: AsyncConnection) -> None:
    await deliveries.due(connection, "transfer", now=10**14, horizon_ms=60_000, limit=5)


async def _stages(connection: AsyncConnection) -> None:
    await deliveries.stages_due(connection, now=10**14, horizon_ms=60_000)


async def _overdue(connection: AsyncConnection) -> None:
    await deliveries_sent.overdue(connection, now=10**14, limit=5)


async def _dead(connection: AsyncConnection) -> None:
    await reminders.free_rows_of_dead_owners(connection, now=10**14, dead_before=10**14)


async def _emptied(connection: AsyncConnection) -> None:
    await deliveries_sent.unsend_all(connection)


async def _backlog(connection: AsyncConnection) -> None:
    await connection.execute(COUNTED_BACKLOG, {"most": 5})


async def test_what_is_in_the_queue_and_what_waits_to_be_indexed_have_indexes(rig: Rig) -> None:
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs")])
    plans = await _plans(rig, _due) + await _plans(rig, _backlog)
    if rig.catalog._engine.dialect.name == "sqlite":
        assert any("ix_reminders_sent (stage=?)" in line for line in plans)
        assert any("ix_imports_unindexed (state=?)" in line for line in plans)
    else:
        # With a handful of rows, Postgres reads whichever index it has; none reads the table.
        assert any("reminders_" in line and "Index" in line for line in plans), plans
        assert not any("Seq Scan on reminders" in line for line in plans), plans


@pytest.mark.parametrize("ask", [_due, _stages, _overdue, _dead, _emptied])
async def test_the_outbox_reads_indexes(
    rig: Rig, ask: Callable[[AsyncConnection], Awaitable[Any]]
) -> None:
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs")])
    plans = await _plans(rig, ask)
    assert any("reminders" in line for line in plans)
    assert [line for line in plans if "SCAN reminders" in line] == []


@pytest.mark.parametrize("ask", [_due, _stages])
async def test_a_backlog_that_is_most_of_the_table_is_not_read_from_its_beginning(
    rig: Rig, ask: Callable[[AsyncConnection], Awaitable[Any]]
) -> None:
    waiting = {"org_id": rig.org_id, "stage": "transfer", "lane": 1, "due_at": 5, "payload": "{}"}
    async with rig.catalog.write() as connection:
        await connection.execute(
            reminder_rows.insert(), [waiting | {"subject_id": f"s{n}"} for n in range(3_000)]
        )
    plans = await _plans(rig, ask, is_small=False)
    assert any("ix_reminders_unsent" in line for line in plans)
    assert [line for line in plans if "SCAN reminders" in line] == []


async def test_the_waiting_are_found_by_org_lane_and_time(rig: Rig) -> None:
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs")])
    plans = await _plans(rig, _due)
    if rig.catalog._engine.dialect.name == "sqlite":
        exact = "ix_reminders_unsent (stage=? AND org_id=? AND lane=? AND due_at>? AND due_at<?)"
        assert sum(exact in line for line in plans) >= 3
    else:
        assert any("ix_reminders_unsent" in line for line in plans)
        bounds = [line for line in plans if "Index Cond" in line and "due_at <= " in line]
        assert any(all(name in line for name in ("stage", "org_id", "lane")) for line in bounds), (
            plans
        )


async def test_dirty_items_and_removals_have_small_indexes(rig: Rig) -> None:
    files = [file(f"f{number}", "docs") for number in range(100)]
    await rig.enumerate([ROOT, folder("docs"), *files])

    async def dirty(connection: AsyncConnection) -> None:
        await tree.dirty_items(connection, rig.drive_id, limit=5)

    async def count(connection: AsyncConnection) -> None:
        await leaving.count_leaving(connection, rig.connections["docs"])

    assert any("ix_items_dirty" in line for line in await _plans(rig, dirty))
    assert any("ix_coverage_leaving" in line for line in await _plans(rig, count))


async def test_waking_drives_asks_for_their_rows_only(rig: Rig) -> None:
    async with rig.catalog.read() as connection:
        await connection.execute(text("SELECT 1"))
    said: list[str] = []

    def listen(*args: Any) -> None:
        said.append(args[2])

    engine = rig.catalog._engine.sync_engine
    event.listen(engine, "before_cursor_execute", listen)
    await wake_due_drives(rig.catalog)
    await heartbeats.reap(rig.catalog, own="me")
    event.remove(engine, "before_cursor_execute", listen)
    (question,) = [one for one in said if "FROM drives" in one]
    assert "EXISTS" in question
    assert "NOT IN (SELECT reminders" not in question

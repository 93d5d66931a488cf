"""What a connection's options do in the catalog: intervals, lanes, deadlines, and the audit log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog.audit_log import entries_of
from drivefeed.catalog.control import matching_connections, rename, set_paused
from drivefeed.catalog.files import fetch
from drivefeed.catalog.reminders import LANE_BACKFILL, LANE_FRESH
from drivefeed.catalog.sources import wake_due_drives
from drivefeed.catalog.tables import connections, reminders
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.model import Policy
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from support.clock import ManualClock

_TREE = [
    ROOT, folder("docs"), folder("urgent", "docs"), file("a", "docs"), file("b", "urgent"),
]  # fmt: skip


async def _rested(rig: Rig) -> None:
    """Whatever made the drive's sync due has been done."""
    async with rig.catalog.write() as connection:
        await connection.execute(
            reminders.update()
            .where(reminders.c.subject_id == rig.drive_id)
            .values(due_at=None, sent_at=None)
        )


async def test_a_drive_follows_the_shortest_interval_of_connections_that_flow(
    catalog: Catalog, clock: ManualClock
) -> None:
    rig = await Rig.make(catalog)
    await rig.connect("docs", Policy(interval_ms=600_000))
    await rig.enumerate(_TREE)
    await _rested(rig)
    clock.turn(ms=599_999)
    assert await wake_due_drives(catalog) == 0, "the settings' minute counted all the same"
    await rig.connect("urgent", Policy(interval_ms=10_000))
    await _rested(rig)
    assert await wake_due_drives(catalog) == 1
    await _rested(rig)
    (quick,) = await matching_connections(catalog, "urgent")
    await set_paused(catalog, quick, paused=True)
    assert await wake_due_drives(catalog) == 0
    clock.turn(ms=1)
    assert await wake_due_drives(catalog) == 1
    await _rested(rig)
    (slow,) = await matching_connections(catalog, "docs")
    await set_paused(catalog, slow, paused=True)
    assert await wake_due_drives(catalog) == 0


async def test_high_priority_goes_before_backfill(catalog: Catalog) -> None:
    rig = await Rig.make(catalog)
    await rig.connect("docs")
    await rig.connect("urgent", Policy(priority="high"))
    await rig.enumerate(_TREE)
    lanes = {}
    for item_id in ("a", "b"):
        lanes[item_id] = (await rig.reminder((await rig.import_of(item_id)).import_id))["lane"]
    assert lanes == {"a": LANE_BACKFILL, "b": LANE_FRESH}


async def test_a_file_has_the_shortest_deadline_and_is_quiet_only_with_all(
    catalog: Catalog, clock: ManualClock
) -> None:
    rig = await Rig.make(catalog)
    await rig.connect("docs", Policy(deadline_ms=5, quiet_hours="00:00-12:00"))
    await rig.connect("urgent", Policy(quiet_hours="00:00-23:59"))
    await rig.enumerate(_TREE)
    one = (await fetch(catalog, (await rig.import_of("b")).import_id))[2]
    assert len(one.policies) == 2
    assert one.deadline_ms(100) == 5
    assert one.deadline_ms(3) == 3
    other = (await fetch(catalog, (await rig.import_of("a")).import_id))[2]
    midnight = clock.now() - clock.now() % 86_400_000 + 86_400_000
    assert other.quiet_until(midnight) == midnight + 12 * 3_600_000
    assert one.quiet_until(midnight) == midnight + 12 * 3_600_000
    assert one.quiet_until(midnight + 13 * 3_600_000) is None


async def test_only_a_changed_scope_is_scanned_anew(catalog: Catalog) -> None:
    rig = await Rig.make(catalog)
    connection_id = await rig.connect("docs")
    await rig.enumerate(_TREE)
    await rig.scan()
    for policy, scans in (
        (Policy(grace_ms=1, brake_count=1, priority="high", interval_ms=60_000), False),
        (Policy(types=("txt",)), True),
    ):
        await rig.connect("docs", policy)
        (row,) = await rig.rows(connections)
        assert row["admitting"] is scans
        assert row["interval_ms"] == policy.interval_ms
    log = await entries_of(catalog, connection_id)
    assert [one.action for one in log] == ["connection.added", *["connection.changed"] * 2]
    assert log[1].after["policy"]["grace_ms"] == log[2].before["policy"]["grace_ms"] == 1


async def test_names_are_told_apart_and_changes_are_recorded(catalog: Catalog) -> None:
    rig = await Rig.make(catalog)
    connection_id = await rig.connect("docs")
    await rig.connect("urgent")
    (one,) = await matching_connections(catalog, "docs")
    for name, why in (
        ("Urgent", "Choose another name"),
        (" ", "at least one character"),
        ("\x1b[31mHa\nr", "␛.31mHa␊r.*cannot be seen"),
    ):
        with pytest.raises(NeedsAttention, match=why):
            await rename(catalog, one, name, actor="jane")
    await rename(catalog, one, "DOCS", actor="jane")
    await rename(catalog, replace(one, name="DOCS"), "DOCS", actor="jane")
    await set_paused(catalog, one, paused=False, actor="jane")
    log = await entries_of(catalog, connection_id)
    assert [(one.actor, one.action) for one in log] == [
        ("settings", "connection.added"),
        ("jane", "connection.renamed"),
    ]
    assert (log[1].before, log[1].after) == ({"name": "docs"}, {"name": "DOCS"})

"""What holds downloads is one row for all of them, and everybody who looks sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from sqlalchemy import update

from drivefeed.catalog.gate import STALE_AFTER_MS, backlog_of, gates_told
from drivefeed.catalog.passport import passports
from drivefeed.catalog.progress import Standing, progress_of
from drivefeed.catalog.tables import imports
from drivefeed.domain.gate import BacklogMarks, Marks
from drivefeed.domain.lifecycle import Event
from drivefeed.domain.notices import NoticeKind, Severity
from drivefeed.domain.reasons import Reason
from drivefeed.services.checkups.finding import Colour
from drivefeed.services.checkups.keeping import gate_findings, retention_findings
from drivefeed.services.gate import Gatekeeper, Place
from drivefeed.services.notices import Notices
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from pathlib import Path

    from support.clock import ManualClock

EXABYTE = 2**60
PLENTY = BacklogMarks(files=1_000, size=EXABYTE)


@pytest.fixture
async def listed(rig: Rig) -> Rig:
    """Three files; one of them is searchable."""
    await rig.enumerate([ROOT, folder("docs"), *(file(name, "docs") for name in ("a", "b", "c"))])
    await rig.bring_live("a")
    return rig


def keeper(rig: Rig, folder_: Path, low: int, marks: BacklogMarks = PLENTY) -> Gatekeeper:
    place = Place("data folder", folder_, Marks(low, low))
    return Gatekeeper(rig.catalog, [place], marks, host="machine")


async def test_files_that_are_still_to_be_copied_are_held_by_a_full_disk(
    listed: Rig, tmp_path: Path, clock: ManualClock
) -> None:
    gatekeeper = keeper(listed, tmp_path / "not" / "yet", EXABYTE)
    await gatekeeper.tick()
    assert gatekeeper.gate.is_shut
    (one,) = await progress_of(listed.catalog)
    assert one.counts[Standing.SEARCHABLE] == 1
    assert one.reasons[Standing.HELD, Reason.WAITING_FOR_DISK] == 2
    stories = {name: (await passports(listed.catalog, name))[0].versions for name in ("a", "b")}
    assert [one["hold"] for one in stories["a"] + stories["b"]] == [None, Reason.WAITING_FOR_DISK]
    (trouble,) = await Notices(listed.catalog, [], owner="us").troubles()
    assert (trouble.kind, trouble.severity) == (NoticeKind.DISK, Severity.URGENT)
    assert "free in the data folder" in trouble.words
    (found,) = gate_findings(await gates_told(listed.catalog))
    assert (found.colour, found.subject) == (Colour.RED, "machine")
    # It is said again while it is so, and does not outlive who says it.
    clock.turn(ms=STALE_AFTER_MS // 2)
    await gatekeeper.tick()
    clock.turn(ms=STALE_AFTER_MS)
    assert await gates_told(listed.catalog)
    clock.turn(ms=1)
    assert not await gates_told(listed.catalog)


async def test_they_go_on_by_themselves_when_there_is_room(listed: Rig, tmp_path: Path) -> None:
    await keeper(listed, tmp_path, EXABYTE).tick()
    # Another process, after a restart: what the former one said is taken back.
    gatekeeper = keeper(listed, tmp_path, 1)
    await gatekeeper.tick()
    assert not gatekeeper.gate.is_shut
    (one,) = await progress_of(listed.catalog)
    assert one.counts[Standing.IN_PROGRESS] == 2
    assert not await gates_told(listed.catalog)
    assert not await Notices(listed.catalog, [], owner="us").troubles()


async def test_what_waits_to_be_indexed_is_counted_by_org(listed: Rig, tmp_path: Path) -> None:
    assert (await backlog_of(listed.catalog, most=10)).of == {}
    for name in ("b", "c"):
        one = await listed.import_of(name)
        await listed.advance(one, Event.STORED, facts={"size": 100, "sha256": name})
    assert (await backlog_of(listed.catalog, most=10)).of == {listed.org_id: (2, 200)}
    assert (await backlog_of(listed.catalog, most=1)).files == 1
    gatekeeper = keeper(listed, tmp_path, 1, BacklogMarks(files=2, size=EXABYTE))
    await gatekeeper.tick()
    assert gatekeeper.gate.orgs == {listed.org_id}
    (found,) = gate_findings(await gates_told(listed.catalog))
    assert found.colour is Colour.YELLOW
    # They are on their way, and nothing keeps them but a turn.
    (one_connection,) = await progress_of(listed.catalog)
    assert one_connection.counts[Standing.IN_PROGRESS] == 2
    # What waits for a person or for pages does not keep others waiting.
    async with listed.catalog.write() as connection:
        await connection.execute(
            update(imports).where(imports.c.state == "stored").values(hold=Reason.QUOTA)
        )
    await gatekeeper.tick()
    assert not gatekeeper.gate.orgs


def test_the_doctor_says_when_old_rows_went() -> None:
    now = 10 * 86_400_000
    (never,) = retention_findings(None, now=now)
    (well,) = retention_findings((now - 3_600_000, {"events": 3, "notices": 0}), now=now)
    (late,) = retention_findings((0, {}), now=now)
    assert [one.colour for one in (never, well, late)] == [
        Colour.GREEN,
        Colour.GREEN,
        Colour.YELLOW,
    ]
    assert "3 rows went (events 3)" in well.words

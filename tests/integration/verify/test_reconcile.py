"""A full check of a drive: it writes nothing of its own, goes on where it was, and asks by id."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.catalog.reconciling import note_reconciled, reconciled
from drivefeed.catalog.rereading import Answer, take_answers, tree_rows
from drivefeed.catalog.scratch import Scratch
from drivefeed.catalog.sources import all_drives, wake_due_drives
from drivefeed.catalog.tables import connections, coverage, drives, items
from drivefeed.declared_folders import add_connection
from drivefeed.domain.errors import Transient
from drivefeed.domain.remote import DriveRef
from drivefeed.services.drive_check import DriveCheck
from drivefeed.services.reconcile import Reconcile
from drivefeed.settings import ConnectionSettings
from drivefeed.sources.graph.budget import Lane
from graphsim.serving import serve
from support.offline import Offline, offline

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.catalog.sources import Drive
    from graphsim.serving import GraphSim

DAY_MS = 24 * 3600 * 1000
FILES = 12


class Rig:
    """A drive that was listed and imported, and the catalog that knows it."""

    def __init__(self, sim: GraphSim, off: Offline, folder: Path) -> None:
        self.sim, self.off, self.folder = sim, off, folder
        self.catalog = off.parts.catalog
        self.source = off.parts.source.at(Lane.VERIFY)

    async def drive(self) -> Drive:
        (found,) = await all_drives(self.catalog)
        return found

    async def lose_changes(self) -> None:
        """Have the position move past everything that happened."""
        drive = await self.drive()
        link: str | None = f"/drives/{drive.remote_id}/root/delta?token=latest"
        page = await self.source.delta(DriveRef(drive.account_id, drive.remote_id), link)
        async with self.catalog.write("page") as connection:
            await connection.execute(drives.update().values(cursor=page.delta_link))

    async def tree(self) -> list[dict[str, Any]]:
        return sorted(await self.off.rows(items), key=lambda row: row["item_id"])

    def check(self, scratch: Scratch, drive: Drive, *, mends: bool) -> DriveCheck:
        return DriveCheck(self.catalog, self.source, scratch, drive.drive_id, mends=mends)

    async def checked(self, *, mends: bool = True) -> DriveCheck:
        drive, scratch = await self.drive(), Scratch()
        check = self.check(scratch, drive, mends=mends)
        while await check.step(drive):
            pass
        return check

    async def known(self) -> set[str]:
        """Names of the files that the connection has."""
        ids = {row["item_id"] for row in await self.off.rows(coverage, coverage.c.admitted)}
        rows = await self.off.rows(items)
        return {row["name"] for row in rows if row["item_id"] in ids and not row["deleted"]}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with rigged(tmp_path) as made:
        yield made


@asynccontextmanager
async def rigged(folder: Path) -> AsyncIterator[Rig]:
    async with serve(page_size=5) as sim:
        for number in range(FILES):
            sim.memory.create_file(f"{number}.txt", b"%d" % number)
        async with offline(sim, folder / "data") as off:
            await off.parts.signing.declare(off.parts.settings.accounts[0])
            await off.parts.signing.book.refresh()
            wanted = ConnectionSettings(account="sim", drive_id=sim.memory.id, name="all")
            await add_connection(off.parts, wanted)
            await off.play()
            yield Rig(sim, off, folder)


def named(sim: GraphSim, name: str) -> str:
    return next(one.id for one in sim.memory.tree.items.values() if one.name == name)


async def test_it_writes_nothing_where_nothing_is_wrong(rig: Rig) -> None:
    before, drive = await rig.tree(), await rig.drive()
    result = await (await rig.checked()).result()
    assert (result.listed, result.suspects, result.found) == (FILES + 1, 0, 0)
    assert await rig.tree() == before
    assert await rig.drive() == drive


async def test_suspects_are_only_told_where_nothing_is_to_be_mended(rig: Rig) -> None:
    rig.sim.memory.delete(named(rig.sim, "3.txt"))
    await rig.lose_changes()
    before = await rig.tree()
    result = await (await rig.checked(mends=False)).result()
    assert (result.suspects, result.found) == (1, 1)
    assert await rig.tree() == before


async def test_lost_and_missed_changes_are_found_and_take_the_way_of_changes(rig: Rig) -> None:
    sim = rig.sim
    folder = sim.memory.create_folder("new folder")
    sim.memory.create_file("missed.txt", b"missed", folder.id)
    sim.memory.delete(named(sim, "3.txt"))
    sim.memory.rename(named(sim, "4.txt"), "four.txt")
    sim.memory.replace(named(sim, "5.txt"), b"another five")
    await rig.lose_changes()
    await rig.off.play()
    assert "3.txt" in await rig.known()
    mark = sim.log.last
    result = await (await rig.checked()).result()
    assert (result.suspects, result.found, result.unclear) == (5, 5, 0)
    assert sim.log.count("item", since=mark) == 5
    await rig.off.play()
    left = {f"{number}.txt" for number in range(FILES)} - {"3.txt", "4.txt"}
    assert await rig.known() == left | {"missed.txt", "four.txt"}
    again = await (await rig.checked()).result()
    assert again.suspects == 0


async def test_a_listing_that_is_wrong_is_believed_by_nobody(rig: Rig) -> None:
    """What a listing leaves out is there when it is asked for."""
    before = await rig.tree()
    drive, scratch = await rig.drive(), Scratch()
    check = rig.check(scratch, drive, mends=True)
    # The listing ends before it began: an empty page with a deltaLink.
    await scratch.keep({"phase": "comparing", "after": ""})
    while await check.step(drive):
        pass
    result = await check.result()
    assert (result.listed, result.suspects, result.found) == (0, FILES + 1, 0)
    assert await rig.tree() == before
    await scratch.aclose()


async def test_a_folder_that_is_gone_is_asked_for_once_for_all_that_was_in_it(rig: Rig) -> None:
    sim = rig.sim
    folder = sim.memory.create_folder("folder")
    for number in range(20):
        sim.memory.create_file(f"inner {number}.txt", b"inner", folder.id)
    async with rig.catalog.write("wake") as connection:
        await connection.execute(drives.update().values(last_round_at=0))
    await wake_due_drives(rig.catalog)
    await rig.off.play()
    assert "inner 7.txt" in await rig.known()
    sim.memory.delete(folder.id)
    await rig.lose_changes()
    mark = sim.log.last
    result = await (await rig.checked()).result()
    assert (result.suspects, result.found) == (21, 21)
    assert sim.log.count("item", since=mark) == 1
    await rig.off.play()
    assert "inner 7.txt" in await rig.known() or await _asks(rig)


async def _asks(rig: Rig) -> bool:
    """Most of the connection would go at once: the brake holds it, as any removal."""
    (row,) = await rig.off.rows(connections)
    return bool(row["attention"] == "mass_removal")


async def test_it_goes_on_where_it_was_after_a_death(rig: Rig) -> None:
    rig.sim.memory.delete(named(rig.sim, "3.txt"))
    await rig.lose_changes()
    path, drive = rig.folder / "a.scratch", await rig.drive()
    first = Scratch(path)
    check = rig.check(first, drive, mends=True)
    mark = rig.sim.log.last
    assert await check.step(drive)
    assert await check.step(drive)
    assert rig.sim.log.count("delta", since=mark) == 2
    # A kill leaves the file as it is; here it is only closed.
    await first.aclose()
    second = Scratch(path)
    check = rig.check(second, drive, mends=True)
    while await check.step(drive):
        pass
    pages = -(-FILES // 5)
    assert rig.sim.log.count("delta", since=mark) == pages
    assert (await check.result()).found == 1
    await second.aclose()


async def test_an_item_that_does_not_answer_is_left_in_doubt(rig: Rig) -> None:
    lost = named(rig.sim, "3.txt")
    rig.sim.memory.rename(lost, "three.txt")
    await rig.lose_changes()
    rig.sim.faults.add("status", op="item", item=lost, status=500, count=-1)
    check = await rig.checked()
    result = await check.result()
    assert (result.found, result.unclear) == (0, 1)
    await rig.off.play()
    assert "3.txt" in await rig.known()


async def test_a_row_that_changed_while_its_item_was_asked_for_stays(rig: Rig) -> None:
    """What the changes told meanwhile is newer than the answer."""
    key = named(rig.sim, "3.txt")
    drive = await rig.drive()
    before = (await tree_rows(rig.catalog, drive.drive_id, [key]))[key]
    async with rig.catalog.write("page") as connection:
        await connection.execute(
            items.update().where(items.c.item_id == key).values(name="newer.txt")
        )
    assert await take_answers(rig.catalog, drive.drive_id, [Answer(key, before, None)]) == 0
    (row,) = await rig.off.rows(items, items.c.item_id == key)
    assert (row["name"], row["deleted"]) == ("newer.txt", False)


async def test_each_drive_has_its_turn_and_is_told_of(rig: Rig) -> None:
    rig.sim.memory.delete(named(rig.sim, "3.txt"))
    await rig.lose_changes()
    work = Reconcile(
        rig.catalog, rig.source, rig.folder / "reconcile", every_ms=DAY_MS, owner="test"
    )
    await work.tick()
    ((drive, standing),) = await reconciled(rig.catalog)
    now = rig.catalog.clock.now()
    assert standing is not None
    assert now + 0.74 * DAY_MS < standing.due_at < now + 1.26 * DAY_MS
    mark = rig.sim.log.last
    await work.tick()
    assert rig.sim.log.count("delta", since=mark) == 0
    eager = Reconcile(rig.catalog, rig.source, rig.folder / "reconcile", every_ms=1, owner="test")
    await note_reconciled(rig.catalog, drive.drive_id, replace(standing, due_at=0))
    for _ in range(10):
        await eager.tick()
        ((_, standing),) = await reconciled(rig.catalog)
        assert standing is not None
        if standing.ended_at is not None:
            break
    assert (standing.listed, standing.found) == (FILES, 1)
    await rig.off.play()
    assert "3.txt" not in await rig.known()
    await eager.aclose()


async def test_a_drive_that_does_not_answer_waits_and_says_so(rig: Rig) -> None:
    rig.sim.faults.add("status", op="delta", status=500, count=-1)
    drive = await rig.drive()
    check = rig.check(Scratch(), drive, mends=True)
    with pytest.raises(Transient):
        await check.step(drive)
    rig.sim.faults.clear()
    assert await check.step(drive)
    await check.scratch.aclose()

"""Permissions of a file's own: asked file by file, where a connection excludes such files."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import delete, update

from drivefeed.catalog.sources import drive_in, wake_drive
from drivefeed.catalog.tables import coverage, documents, drives, imports, items
from drivefeed.domain.errors import NeedsAttention, NotFound, Transient
from drivefeed.domain.model import Policy
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import DriveRef
from drivefeed.services.plan import apply_plan, plan_connection
from drivefeed.sources.graph.own_permissions import _is_own, _page_of
from support.offline import Offline, offline

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.domain.plan import Plan
    from drivefeed.sources.graph.source import GraphSource
    from graphsim.serving import GraphSim

OP = "permissions"
EXCLUDE = Policy(own_permissions="exclude")
LINK = {"id": "3", "roles": ["read"], "link": {"scope": "users", "type": "view"}}


@pytest.fixture
def sim_options() -> dict[str, Any]:
    return {"profile": "documentLibrary"}


async def test_what_is_inherited_is_told_from_what_is_not(
    sim: GraphSim, source: GraphSource
) -> None:
    drive, ref = sim.memory, DriveRef("sim", sim.memory.id)
    own, plain = (drive.create_file(name, b"x") for name in ("own.txt", "plain.txt"))
    drive.set_permissions(own.id, [LINK])
    spent = sim.log.units()
    assert await source.has_own_permissions(ref, own.id)
    assert not await source.has_own_permissions(ref, plain.id)
    drive.set_permissions(own.id, [])
    assert not await source.has_own_permissions(ref, own.id)
    assert (sim.log.count(OP), sim.log.units() - spent) == (3, 3 * 5)
    drive.delete(plain.id)
    with pytest.raises(NotFound):
        await source.has_own_permissions(ref, plain.id)


def test_a_personal_drives_owner_is_no_permission_of_a_file() -> None:
    owner = {"roles": ["owner"], "grantedToV2": {}}
    assert not _is_own(owner, is_personal=True)
    assert _is_own(owner, is_personal=False), "of its owner alone, in a library of many"
    assert _is_own(LINK, is_personal=True)


@pytest.mark.parametrize(
    ("permission", "is_own"),
    [
        ({"roles": ["read"], "inheritedFrom": {}}, False),
        ({"roles": ["read"], "inheritedFrom": {"id": "1"}}, False),
        ({"roles": ["read"], "inheritedFrom": None}, True),
        ({"roles": ["read"]}, True),
    ],
)
def test_an_inherited_permission_says_so_even_with_nothing_in_it(
    permission: dict[str, Any],
    is_own: bool,  # noqa: FBT001
) -> None:
    assert _is_own(permission, is_personal=False) is is_own


@pytest.mark.parametrize("body", [b"", b"[]", b'{"value": 1}', b'{"value": [1]}', b"<html>"])
def test_an_answer_that_is_none_is_asked_for_again(body: bytes) -> None:
    with pytest.raises(Transient):
        _page_of(body)


async def test_all_pages_are_read_and_nobody_at_all_is_no_answer(
    sim: GraphSim, source: GraphSource
) -> None:
    drive, ref = sim.memory, DriveRef("sim", sim.memory.id)
    long, untold = (drive.create_file(name, b"x") for name in ("long.txt", "untold.txt"))
    inherited = {"roles": ["read"], "inheritedFrom": {}}
    drive.set_permissions(long.id, [inherited] * 200 + [LINK])
    assert await source.has_own_permissions(ref, long.id)
    assert sim.log.count(OP) == 2
    drive.set_permissions(long.id, [inherited] * 201)
    assert not await source.has_own_permissions(ref, long.id)
    drive.untold.add(untold.id)
    with pytest.raises(NeedsAttention, match="told this account nothing") as caught:
        await source.has_own_permissions(ref, untold.id)
    assert caught.value.reason is Reason.PERMISSIONS_UNKNOWN
    sim.faults.add("status", status=403, op=OP, count=1)
    with pytest.raises(NeedsAttention, match="a file's permissions") as caught:
        await source.has_own_permissions(ref, long.id)
    assert caught.value.reason is Reason.PERMISSIONS_UNKNOWN


class Library:
    """A library of nine files, of which three have permissions of their own."""

    def __init__(self, sim: GraphSim) -> None:
        self.sim, self.drive = sim, sim.memory
        self.files = [self.drive.create_file(f"{n}.txt", b"x" * (n + 9)) for n in range(9)]
        for one in self.files[:3]:
            self.drive.set_permissions(one.id, [LINK])
        self.drive.create_file("tool.exe", b"MZ")

    async def plan(self, here: Offline, policy: Policy = EXCLUDE) -> Plan:
        root = self.drive.tree.root_id
        return await plan_connection(here.parts, here.account_id, self.drive.id, root, policy)

    async def connect(self, here: Offline, policy: Policy = EXCLUDE) -> Plan:
        plan = await self.plan(here, policy)
        await apply_plan(here.parts, plan, name="Library", actor="test")
        await here.play()
        await here.make_searchable()
        return plan


async def live(here: Offline) -> set[str]:
    rows = await here.rows(documents, documents.c.live_import_id.is_not(None))
    return {row["name"] for row in rows}


def names(numbers: range | list[int]) -> set[str]:
    return {f"{n}.txt" for n in numbers}


async def look_again(here: Offline) -> None:
    catalog = here.parts.catalog
    (row,) = await here.rows(drives)
    async with catalog.write("wake") as connection:
        drive = await drive_in(connection, row["id"])
        await wake_drive(connection, drive, due_at=catalog.clock.now())
    await here.play()
    await here.make_searchable()


async def test_the_plan_asks_each_file_once_and_is_what_then_happens(
    sim: GraphSim, tmp_path: Path
) -> None:
    library = Library(sim)
    async with offline(sim, tmp_path / "data") as here:
        plan = await library.connect(here)
        skipped: dict[str | None, int] = {one.reason: one.files for one in plan.skipped}
        assert skipped == {Reason.OWN_PERMISSIONS: 3, Reason.UNSUPPORTED_TYPE: 1}
        assert (plan.files, plan.shared) == (6, 0)
        assert await live(here) == names(range(3, 9))
        rows = await here.rows(coverage)
        assert Counter(row["reason"] for row in rows) == {None: 6, **skipped}
        # What no connection wants anyway was not asked about, and nobody was asked twice.
        assert sim.log.count(OP) == 9
        assert sim.log.count("content") == 6


async def test_without_the_option_nobody_is_asked_and_a_change_shows_what_leaves(
    sim: GraphSim, tmp_path: Path
) -> None:
    library = Library(sim)
    async with offline(sim, tmp_path / "data") as here:
        await library.connect(here, Policy())
        assert await live(here) == names(range(9))
        assert sim.log.count(OP) == 0
        plan = await library.connect(here)
        assert plan.change is not None
        assert (plan.change.added, plan.change.removed, plan.change.hidden) == (0, 3, 3)
        assert await live(here) == names(range(3, 9))
        plan = await library.connect(here, Policy())
        assert plan.change is not None
        assert (plan.change.added, plan.change.returning, plan.change.removed) == (3, 3, 0)
        assert await live(here) == names(range(9))
        assert sim.log.count(OP) == 9


async def test_what_is_listed_and_changed_later_is_asked_before_it_is_decided(
    sim: GraphSim, tmp_path: Path
) -> None:
    library = Library(sim)
    async with offline(sim, tmp_path / "data") as here:
        await library.connect(here)
        # Another permission is no other version.
        library.drive.set_permissions(library.files[3].id, [LINK])
        library.drive.set_permissions(library.files[0].id, [])
        new = library.drive.create_file("new.txt", b"new")
        library.drive.set_permissions(new.id, [LINK])
        await look_again(here)
        assert await live(here) == names([0, 4, 5, 6, 7, 8])
        assert sim.log.count(OP) == 9 + 3
        told = {row["name"]: row["own_permissions"] for row in await here.rows(items)}
        assert (told["new.txt"], told["0.txt"], told["3.txt"]) == (True, False, True)
        assert sim.log.count("content") == 6 + 1


async def test_a_folder_that_nobody_planned_is_asked_at_the_end_of_its_listing(
    sim: GraphSim, tmp_path: Path
) -> None:
    """Nothing is admitted before that: it would leave again, and the brake count it."""
    library = Library(sim)
    async with offline(sim, tmp_path / "data") as here:
        plan = await library.plan(here, Policy())
        async with here.parts.catalog.write("enumeration") as connection:
            await connection.execute(delete(items))
            await connection.execute(update(drives).values(cursor=None))
        await apply_plan(here.parts, replace(plan, policy=EXCLUDE), name="L", actor="test")
        await here.play()
        await here.make_searchable()
        assert await live(here) == names(range(3, 9))
        assert len(await here.rows(imports)) == 6
        assert sim.log.count(OP) == 9


async def test_where_it_is_not_told_the_plan_says_so_and_no_file_is_copied(
    sim: GraphSim, tmp_path: Path
) -> None:
    library = Library(sim)
    async with offline(sim, tmp_path / "data") as here:
        plan = await library.plan(here, Policy())
        sim.faults.add("status", status=403, op=OP, count=100)
        with pytest.raises(NeedsAttention) as caught:
            await library.plan(here)
        assert caught.value.reason is Reason.PERMISSIONS_UNKNOWN
        await apply_plan(here.parts, replace(plan, policy=EXCLUDE), name="L", actor="test")
        await here.play()
        rows = await here.rows(imports)
        assert {(row["state"], row["attention"]) for row in rows} == {
            ("discovered", "permissions_unknown")
        }
        assert sim.log.count("content") == 0


async def test_a_file_that_slipped_through_is_asked_before_it_is_copied(
    sim: GraphSim, tmp_path: Path
) -> None:
    library = Library(sim)
    async with offline(sim, tmp_path / "data") as here:
        plan = await library.plan(here, Policy())
        # The scan is told nothing, and then the right is there.
        sim.faults.add("status", status=403, op=OP, count=4)
        await apply_plan(here.parts, replace(plan, policy=EXCLUDE), name="L", actor="test")
        await here.play()
        rows = await here.rows(imports)
        assert Counter((row["state"], row["reason"]) for row in rows) == {
            ("rejected", "own_permissions"): 3,
            ("stored", None): 6,
        }
        assert sim.log.count("content") == 6

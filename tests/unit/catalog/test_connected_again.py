"""A connection that is disconnected, and connected again; and one whose options change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog import reminders
from drivefeed.catalog.connecting import Wanted, connect, connect_in
from drivefeed.catalog.control import matching_connections, set_paused
from drivefeed.catalog.erasing import disconnect, withdraw_some
from drivefeed.catalog.receipts import keep_receipt, receipts
from drivefeed.catalog.waiting import again
from drivefeed.domain.model import Policy
from drivefeed.domain.reasons import Reason
from unit.catalog.rig import ROOT, Rig, file, folder, gone

if TYPE_CHECKING:
    from drivefeed.catalog.receipts import Receipt
    from drivefeed.domain.model import Connection
    from support.clock import ManualClock

LATER = 3_600_000


@pytest.fixture
async def two(rig: Rig) -> Rig:
    """Two connected folders; a file in each is searchable."""
    await rig.connect("other")
    await rig.enumerate(
        [
            ROOT,
            *map(folder, ("docs", "other")),
            file("a", "docs"),
            file("b", "docs"),
            file("o", "other"),
        ]
    )
    await rig.scan("other")
    for name in ("a", "b", "o"):
        await rig.bring_live(name)
    return rig


async def named(rig: Rig, name: str) -> Connection:
    (found,) = await matching_connections(rig.catalog, name)
    return found


async def leave(rig: Rig, name: str, *, erases: bool = False) -> Receipt:
    return await disconnect(
        rig.catalog, await named(rig, name), erases=erases, signed_out=False, actor="somebody"
    )


async def come_back(rig: Rig, policy: Policy | None = None, *, actor: str = "somebody") -> None:
    await connect(
        rig.catalog,
        drive_id=rig.drive_id,
        root_item_id="docs",
        name="docs",
        policy=policy or Policy(),
        actor=actor,
    )


async def test_what_was_kept_follows_nothing_though_others_follow_the_drive(two: Rig) -> None:
    await leave(two, "docs")
    await two.round([*gone("a"), file("b", "docs", "2"), file("c", "docs"), file("p", "other")])
    assert await two.wanted() == {"a": "1", "b": "1", "o": "1", "p": "1"}
    assert await two.live() == {"a", "b", "o"}


async def test_connected_again_it_is_what_the_folder_is_by_now(
    two: Rig, clock: ManualClock
) -> None:
    await leave(two, "docs")
    await two.round([*gone("a"), file("b", "docs", "2"), file("c", "docs")])
    await come_back(two)
    one = await named(two, "docs")
    assert (one.paused, one.disconnected) == (False, False)
    await two.scan("docs")
    await two.settle()
    assert await two.wanted() == {"b": "2", "c": "1", "o": "1"}
    (old,) = await receipts(two.catalog)
    assert (old.policy, old.root_item_id) == ("keep", "")
    # It is paused and resumed like any other, and may be left once more.
    await set_paused(two.catalog, one, paused=True)
    assert not (await named(two, "docs")).disconnected
    clock.turn(ms=1)
    await leave(two, "docs")
    assert (await named(two, "docs")).disconnected
    assert len(await receipts(two.catalog)) == 2


async def test_whoever_still_has_an_earlier_receipt_changes_nothing_else(two: Rig) -> None:
    before = await leave(two, "docs")
    await come_back(two)
    async with two.catalog.write() as connection:
        await keep_receipt(connection, replace(before, signed_out=True))
    await set_paused(two.catalog, await named(two, "docs"), paused=True)
    assert not (await named(two, "docs")).disconnected
    (old,) = await receipts(two.catalog)
    assert (old.root_item_id, old.signed_out) == ("", True)


async def test_neither_the_settings_nor_a_file_brings_it_back(two: Rig) -> None:
    await leave(two, "docs")
    await come_back(two, actor="settings")
    declared = Wanted(two.drive_id, "docs", "docs", Policy(), declared=True)
    async with two.catalog.write() as connection:
        await connect_in(connection, declared, fresh_id="x", actor="somebody")
    assert (await named(two, "docs")).disconnected


async def test_an_erasure_takes_what_is_hidden_already_and_nothing_of_others(two: Rig) -> None:
    await two.round(gone("a", "o"))
    assert await two.live() == {"b"}
    receipt = await leave(two, "docs", erases=True)
    while await withdraw_some(two.catalog, receipt):
        pass
    reasons = {key: (await two.document(key))["unwanted_reason"] for key in ("a", "b", "o")}
    assert reasons == {
        "a": Reason.ERASED,
        "b": Reason.ERASED,
        "o": Reason.REMOVED_AT_SOURCE,
    }


async def test_other_quiet_hours_count_at_once(rig: Rig) -> None:
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs")])
    one = await rig.import_of("a")
    quiet = replace(Policy(), quiet_hours="00:00-23:59")
    await come_back(rig, quiet)
    now = rig.catalog.clock.now()
    number = (await rig.reminder(one.import_id))["number"]
    async with rig.catalog.write() as connection:
        claim = await reminders.claim(
            connection, subject_id=one.import_id, number=number, owner="w", now=now, busy_ms=LATER
        )
    assert claim is not None
    await again(rig.catalog, claim, due_at=now + LATER, hold=Reason.QUIET_HOURS)
    assert await rig.due(one.import_id) == ("transfer", LATER)
    await come_back(rig, quiet)
    assert await rig.due(one.import_id) == ("transfer", LATER)
    await come_back(rig)
    assert await rig.due(one.import_id) == ("transfer", 0)

"""An account goes with what was only listed through it, and stays where anything was connected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog.account_removal import remove_account
from drivefeed.catalog.accounts import all_accounts, find_account
from drivefeed.catalog.control import set_paused
from drivefeed.catalog.erasing import disconnect, end_leaving, forget_items
from drivefeed.catalog.sources import all_connections, fetch_drive
from drivefeed.catalog.subscriptions import note_asked, watched_drives
from drivefeed.catalog.tables import drives, items
from drivefeed.domain.errors import NeedsAttention, NotFound
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog


async def test_what_was_only_listed_to_plan_goes_with_its_account(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drivefeed.catalog.erasing._ITEMS", 3)
    gone: list[int] = []

    async def forget(connection: AsyncConnection, drive_id: str) -> int:
        gone.append(await forget_items(connection, drive_id))
        return gone[-1]

    monkeypatch.setattr("drivefeed.catalog.account_removal.forget_items", forget)
    planned = await Rig.make(catalog)
    await planned.enumerate([ROOT, folder("docs"), *(file(f"f{n}", "docs") for n in range(7))])
    other = await Rig.make(catalog, name="another org")
    await other.enumerate([ROOT, folder("docs")])
    mine = next(one for one in await all_accounts(catalog) if one.org == "org")

    await remove_account(catalog, mine)

    assert gone == [3, 3, 3, 0], "no transaction takes as long as a tree is large"
    assert [one.org for one in await all_accounts(catalog)] == ["another org"]
    assert [row["id"] for row in await other.rows(drives)] == [other.drive_id]
    assert {row["drive_id"] for row in await other.rows(items)} == {other.drive_id}
    with pytest.raises(NotFound):
        await fetch_drive(catalog, planned.drive_id)


async def test_a_drive_that_is_connected_keeps_its_account_with_all_that_was_listed(
    catalog: Catalog, rig: Rig
) -> None:
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs")])
    account = await find_account(catalog, "account")
    (connected,) = await all_connections(catalog)
    before = await rig.rows(items)
    for paused in (False, True):
        await set_paused(catalog, connected, paused=paused)
        with pytest.raises(NeedsAttention, match="is how drive 'Drive' is read"):
            await remove_account(catalog, account)
    await disconnect(catalog, connected, erases=False, signed_out=False, actor="test")
    with pytest.raises(NeedsAttention, match="is how drive 'Drive' was read"):
        await remove_account(catalog, account)
    assert await rig.rows(items) == before
    assert (await rig.drive()).cursor


@pytest.mark.parametrize("left", ["documents", "subscription"])
async def test_what_is_left_of_an_erased_connection_keeps_its_account(
    catalog: Catalog, rig: Rig, left: str
) -> None:
    await rig.enumerate([ROOT, folder("docs"), *([file("a", "docs")] * (left == "documents"))])
    if left == "subscription":
        (drive,) = await watched_drives(catalog)
        await note_asked(catalog, drive, secret_hash="hash")
    (connected,) = await all_connections(catalog)
    receipt = await disconnect(catalog, connected, erases=True, signed_out=False, actor="test")
    await end_leaving(catalog, receipt)
    assert await all_connections(catalog) == []
    with pytest.raises(NeedsAttention, match="is how drive 'Drive' was read"):
        await remove_account(catalog, await find_account(catalog, "account"))

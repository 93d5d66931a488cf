"""Scenes of a drive that is read with difficulty: links that fail, rounds that lead nowhere."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from drivefeed.catalog.pages_doubts import learn
from drivefeed.catalog.pages_rounds import give_up_round, note_failing
from drivefeed.catalog.routes import read_through
from drivefeed.catalog.sources import all_connections, all_drives
from drivefeed.catalog.tree_identity import welcome_restored_folders
from durability.memories import asked_of
from durability.scenes import catalog_here, settings_here

if TYPE_CHECKING:
    from drivefeed.catalog.sources import Drive


def astray() -> None:
    """Everything is written that a drive with difficulties brings, though it has none."""
    asyncio.run(_astray())


async def _astray() -> None:
    async with catalog_here() as catalog:
        (drive,) = await all_drives(catalog)
        (one,) = await all_connections(catalog)
        _bury(drive, one.root_item_id, is_gone="FALSE")
        await note_failing(catalog, drive)
        await read_through(catalog, drive, drive.account_id, why="a drill")
        await learn(catalog, drive, [])
        _bury(drive, one.root_item_id, is_gone="TRUE")
        await welcome_restored_folders(catalog, drive)
        _bury(drive, one.root_item_id, is_gone="FALSE")
        await give_up_round(catalog, drive)


def _bury(drive: Drive, item_id: str, *, is_gone: str) -> None:
    """Say of a folder that it is gone, or that it is there, as a page would have."""
    asked_of(
        settings_here(),
        f"UPDATE items SET deleted = {is_gone} WHERE drive_id = ? AND item_id = ?",
        drive.drive_id,
        item_id,
    )

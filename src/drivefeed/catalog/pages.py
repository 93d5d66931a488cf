"""Rounds: pages applied whole, ends of rounds, settling, and the scan of a new connection.

A page's items, decisions, reminders and the moved cursor are one transaction, guarded by the
cursor it was fetched with: a page is applied whole or the cursor stays.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update

from drivefeed.catalog import reminders
from drivefeed.catalog.admission import gone_at_source
from drivefeed.catalog.deciding import FOLDERS, decide
from drivefeed.catalog.leaving import apply_leaving, brake_or_pass
from drivefeed.catalog.pacing import pace_in
from drivefeed.catalog.pages_rounds import FRESH_ROUND
from drivefeed.catalog.roots import look_at_roots
from drivefeed.catalog.sources import connection_of, drive_in, followed_in, wake_drive
from drivefeed.catalog.tables import connections, drives
from drivefeed.catalog.tree import (
    bury_unseen,
    dirty_items,
    items_after,
    known_items,
    mark_children_dirty,
    mark_decided,
    mark_dirty,
    rooted_folders,
    save_items,
)
from drivefeed.catalog.tree_identity import follow_new_root
from drivefeed.domain.delta import plan_page
from drivefeed.domain.remote import ItemKind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.delta import TreeItem
    from drivefeed.domain.pace import Pace
    from drivefeed.domain.remote import DeltaPage

CHUNK = 500


async def apply_page(
    catalog: Catalog, drive: Drive, page: DeltaPage, *, after_deaths: bool = False
) -> Drive:
    """Apply one page and move the cursor; where the cursor has moved already, do nothing.

    Args:
        after_deaths: whether earlier runs ended with their process, which is forgotten with it.

    Returns:
        The drive as it is now.
    """
    now = catalog.clock.now()
    async with catalog.write("page", beside=True) as connection:
        current = await drive_in(connection, drive.drive_id, lock=True)
        if (current.cursor, current.generation) != (drive.cursor, drive.generation):
            return current
        known = await known_items(connection, drive.drive_id, {item.item_id for item in page.items})
        plan = plan_page(
            page.items,
            known,
            generation=current.generation,
            enumerating=current.enumerating,
            tells_changes=not current.enumerating,
        )
        decided: set[str] = set()
        if current.enumerating:
            fresh = [row for row in plan.rows if row.dirty]
            decided = await decide(
                connection,
                current,
                await followed_in(connection, drive.drive_id),
                fresh,
                now=now,
                lane=reminders.LANE_BACKFILL,
                generation=current.generation,
                told={row.item_id: row for row in plan.rows},
            )
            if current.generation == 1:
                decided |= await _new_folders(connection, current, fresh, known)
        await save_items(connection, drive.drive_id, plan.rows, decided=decided)
        dirty = {row.item_id for row in plan.rows if row.dirty}
        await _look_for_restored(connection, drive, page, known.keys() - dirty)
        values: dict[str, Any] = {
            "cursor": page.next_link or page.delta_link,
            "pages_in_round": current.pages_in_round + page.pages,
            "barren_pages": 0 if plan.news else current.barren_pages + page.pages,
            "failing_since": None,
        }
        if dirty:
            values["changed_at"] = now
        if not current.enumerating and current.pages_in_round == 0:
            values["round_link"] = current.cursor
        if page.delta_link is not None:
            if current.enumerating:
                await follow_new_root(connection, current)
                await bury_unseen(connection, drive.drive_id, generation=current.generation)
            values |= {"enumerating": False, "settling": True, "given_up": 0, **FRESH_ROUND}
        await connection.execute(update(drives).where(drives.c.id == drive.drive_id).values(values))
        if after_deaths:
            await reminders.note_progress(connection, drive.drive_id)
        if page.delta_link is not None:
            return await drive_in(connection, drive.drive_id)
        return replace(current, **values)


async def _look_for_restored(
    connection: AsyncConnection, drive: Drive, page: DeltaPage, as_before: Collection[str]
) -> None:
    """Have files decided anew that are told as they were, and were gone when they were copied."""
    told = {one.item_id for one in page.items if not one.deleted}
    if again := told.intersection(as_before):
        await mark_dirty(connection, drive.drive_id, gone_at_source(connection, drive, again))


async def _new_folders(
    connection: AsyncConnection,
    drive: Drive,
    fresh: Sequence[TreeItem],
    known: Mapping[str, TreeItem],
) -> set[str]:
    """Return the folders of a page about which nothing is left to decide.

    Nothing decided can lie in a folder that was never listed before. One whose own parent is not
    listed yet stays open, so that the parent is asked for if it never comes.
    """
    folders = [
        row for row in fresh if row.kind in FOLDERS and row.is_whole and row.item_id not in known
    ]
    listed = {row.item_id for row in fresh} | known.keys()
    above = {row.parent_id for row in folders if row.parent_id} - listed
    listed |= (await known_items(connection, drive.drive_id, above)).keys()
    return {row.item_id for row in folders if row.parent_id is None or row.parent_id in listed}


async def settle_some(
    catalog: Catalog,
    drive_id: str,
    pace: Pace | None = None,
    *,
    is_round: bool = True,
    after_deaths: bool = False,
) -> bool:
    """Make some of the decisions that a completed round left; True while there are more.

    First every item is decided, and what would leave is only noted; then each connection's
    removals are counted, braked or applied. The last step ends the round.

    Args:
        pace: how soon the next round follows; None for the settings' pace.
        is_round: whether a round has just ended; a scan leaves something to settle as well.
        after_deaths: as for :func:`apply_page`.
    """
    now = catalog.clock.now()
    async with catalog.write("settling", beside=True) as connection:
        drive = await drive_in(connection, drive_id, lock=True)
        if not drive.settling:
            return False
        dirty = await dirty_items(connection, drive_id, limit=CHUNK)
        known = await followed_in(connection, drive_id)
        if dirty:
            # Whatever it is, something may lie below it.
            folders = [one for one in dirty if one.kind is not ItemKind.FILE]
            await mark_decided(connection, drive_id, [one.item_id for one in folders])
            await mark_children_dirty(
                connection, drive_id, await rooted_folders(connection, drive_id, folders)
            )
            decided = await decide(
                connection, drive, known, dirty, now=now, lane=reminders.LANE_FRESH
            )
            await mark_decided(connection, drive_id, decided)
            if after_deaths:
                await reminders.note_progress(connection, drive_id)
            return True
        scanning = await _scanning(connection, drive_id)
        there, is_anew = await look_at_roots(connection, drive, known)
        if is_anew:
            return True
        for each in there:
            # What a scan finds is counted as a whole, when it is done.
            if each.connection_id in scanning or not await brake_or_pass(connection, each):
                continue
            if await apply_leaving(connection, each, now=now, limit=CHUNK):
                return True
        values: dict[str, Any] = {"settling": False}
        if is_round:
            values["last_round_at"] = now
            values["pace_ms"] = pace and await pace_in(connection, drive, pace, now=now)
        await connection.execute(update(drives).where(drives.c.id == drive_id).values(values))
    return False


async def _scanning(connection: AsyncConnection, drive_id: str) -> set[str]:
    rows = await connection.execute(
        select(connections.c.id).where(
            connections.c.drive_id == drive_id, connections.c.admitting.is_(True)
        )
    )
    return {str(key) for key in rows.scalars()}


async def scan_some(catalog: Catalog, connection_id: str) -> bool:
    """Decide the next items of the tree for a new or changed connection; True while more are left.

    What the scan finds to leave is applied by the settling of the next round.
    """
    now = catalog.clock.now()
    one = select(connections).where(connections.c.id == connection_id)
    async with catalog.write("scan", beside=True) as connection:
        row = (await connection.execute(one)).mappings().one_or_none()
        if row is None:
            return False
        drive = await drive_in(connection, row["drive_id"], lock=True)
        row = (await connection.execute(one)).mappings().one()
        if not row["admitting"]:
            return False
        each = connection_of(row)
        found = await items_after(connection, each.drive_id, row["admit_cursor"], limit=CHUNK)
        await decide(connection, drive, [each], found, now=now, lane=reminders.LANE_BACKFILL)
        done = len(found) < CHUNK
        if done and drive.between_rounds:
            # Removals that the scan noted are counted and applied by a settling. A round that is
            # under way ends with one; settling before its end would decide on half a listing.
            await connection.execute(
                update(drives).where(drives.c.id == each.drive_id).values(settling=True)
            )
        await connection.execute(
            update(connections)
            .where(connections.c.id == connection_id)
            .values(admitting=not done, admit_cursor=None if done else found[-1].item_id)
        )
    return not done


async def note_drive(
    catalog: Catalog, drive_id: str, *, hold: str | None, attention: str | None, detail: str
) -> None:
    """Record why a drive waits, for a condition or for a person."""
    async with catalog.write("drive.note") as connection:
        await connection.execute(
            update(drives)
            .where(drives.c.id == drive_id)
            .values(hold=hold, attention=attention, detail=detail)
        )


async def calm_drive(catalog: Catalog, drive_id: str) -> None:
    """A drive's sync went well: nothing holds it and nobody needs to look."""
    async with catalog.write("drive.calm") as connection:
        await connection.execute(
            update(drives)
            .where(
                drives.c.id == drive_id,
                drives.c.hold.is_not(None) | drives.c.attention.is_not(None),
            )
            .values(hold=None, attention=None, detail=None)
        )


async def settle_soon(catalog: Catalog, connection_id: str) -> None:
    """Make the drive of a scanned connection settle what the scan noted."""
    async with catalog.write("drive.settle_soon") as connection:
        drive_id = (
            await connection.execute(
                select(connections.c.drive_id).where(connections.c.id == connection_id)
            )
        ).scalar_one()
        drive = await drive_in(connection, drive_id)
        await wake_drive(connection, drive, due_at=catalog.clock.now())

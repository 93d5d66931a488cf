"""What a completed round left unclear: items to ask for by id before anything is decided.

Delta was reported to send children and never the folder they lie in, not even the root
(abraunegg#98, #2017), and to leave out properties. A folder that a listing leaves out is not gone
while what lies in it is told. Nothing is decided about such items for as
long as the service can still be asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, exists, or_, select

from drivefeed.catalog.sources import drive_in
from drivefeed.catalog.tables import connections, items
from drivefeed.catalog.tree import item_of, known_items, lineages, save_items
from drivefeed.domain.delta import plan_page
from drivefeed.domain.remote import ItemKind

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.remote import RemoteItem

_parents = items.alias("parents")
_children = items.alias("children")


async def doubtful(
    catalog: Catalog, drive: Drive, *, asked: Collection[str], limit: int
) -> list[str]:
    """Return ids to ask for: folders that nobody told of and are needed, and half-told items.

    Only items about which a decision is due are looked at.

    Args:
        asked: ids that were asked for already, without success or of no use.
        limit: how many ids at most.
    """
    async with catalog.read() as connection:
        found = [
            *await _unknown_parents(connection, drive, limit + len(asked)),
            *await _left_out(connection, drive, limit + len(asked)),
            *await _half_told(connection, drive, limit + len(asked)),
            *await _in_circles(connection, drive, limit + len(asked)),
        ]
    return [key for key in dict.fromkeys(found) if key not in asked][:limit]


async def _unknown_parents(connection: AsyncConnection, drive: Drive, limit: int) -> list[str]:
    """Folders that were never told of, or of which was last told that they are deleted.

    Asked for distinct parents, or for those that are not null, SQLite goes through the index by
    parents, with all items of the drive, instead of the one with those that are dirty: eight
    seconds on 600,000 items, where ten had changed. So it is asked for something that is in no
    index, and what has no parent is left out afterwards.
    """
    rows = await connection.execute(
        select(items.c.parent_id + "")
        .select_from(
            items.outerjoin(
                _parents,
                and_(
                    _parents.c.drive_id == items.c.drive_id,
                    _parents.c.item_id == items.c.parent_id,
                ),
            )
        )
        .where(
            items.c.drive_id == drive.drive_id,
            items.c.dirty,
            items.c.deleted.is_(False),
            or_(_parents.c.item_id.is_(None), _parents.c.deleted),
        )
        .distinct()
        .limit(limit + 1)
    )
    return [str(key) for key in rows.scalars() if key is not None]


async def _left_out(connection: AsyncConnection, drive: Drive, limit: int) -> list[str]:
    """Folders that a listing left out, and that must be there for all that it told.

    Those are the ones in which something lies that it did tell of; and the drive's root and the
    connected folders, whose end would be the end of everything below them.
    """
    connected = select(connections.c.root_item_id).where(connections.c.drive_id == drive.drive_id)
    rows = await connection.execute(
        select(items.c.item_id)
        .where(
            items.c.drive_id == drive.drive_id,
            items.c.dirty,
            items.c.deleted,
            items.c.kind != ItemKind.FILE,
            items.c.generation < drive.generation,
            or_(
                items.c.kind == ItemKind.ROOT,
                items.c.item_id.in_(connected),
                exists().where(
                    _children.c.drive_id == items.c.drive_id,
                    _children.c.parent_id == items.c.item_id,
                    _children.c.deleted.is_(False),
                    _children.c.generation == drive.generation,
                ),
            ),
        )
        .limit(limit)
    )
    return [str(key) for key in rows.scalars()]


async def _half_told(connection: AsyncConnection, drive: Drive, limit: int) -> list[str]:
    """Items of which not enough was told; see :attr:`drivefeed.domain.delta.TreeItem.is_whole`."""
    rows = await connection.execute(
        select(items.c.item_id)
        .where(
            items.c.drive_id == drive.drive_id,
            items.c.dirty,
            items.c.deleted.is_(False),
            or_(
                items.c.name == "",
                items.c.kind == ItemKind.UNKNOWN,
                and_(items.c.parent_id.is_(None), items.c.kind != ItemKind.ROOT),
            ),
        )
        .limit(limit)
    )
    return [str(key) for key in rows.scalars()]


async def _in_circles(connection: AsyncConnection, drive: Drive, limit: int) -> list[str]:
    """Folders that were told to lie in each other, or in themselves."""
    rows = await connection.execute(
        select(items)
        .where(
            items.c.drive_id == drive.drive_id,
            items.c.dirty,
            items.c.deleted.is_(False),
            items.c.kind != ItemKind.FILE,
        )
        .limit(limit)
    )
    folders = [item_of(row) for row in rows.mappings()]
    lines = await lineages(connection, drive.drive_id, folders)
    open_ended = [one for one in folders if not lines[one.item_id].complete]
    tops = {one.item_id: (*lines[one.item_id].folders, one)[0].parent_id for one in open_ended}
    there = await known_items(connection, drive.drive_id, {key for key in tops.values() if key})
    return [key for key, above in tops.items() if above in there]


async def learn(catalog: Catalog, drive: Drive, found: Sequence[RemoteItem]) -> None:
    """Write into the tree what the service said of items that were asked for by id.

    Nothing is written once the round they belong to is settled.
    """
    async with catalog.write("round.learn", beside=True) as connection:
        current = await drive_in(connection, drive.drive_id, lock=True)
        if not current.settling:
            return
        known = await known_items(connection, drive.drive_id, [one.item_id for one in found])
        plan = plan_page(found, known, generation=current.generation)
        await save_items(connection, drive.drive_id, plan.rows)

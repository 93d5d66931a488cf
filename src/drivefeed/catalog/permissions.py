"""Files whose permissions decide about them: for which to ask, and what was told.

Permissions are asked for file by file, so only of files that are wanted but for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, select, update

from drivefeed.catalog.deciding import (
    FOLDERS,
    awaits_permissions,
    forgotten_items,
    verdict_of,
)
from drivefeed.catalog.roots import rooted_connections
from drivefeed.catalog.sources import connection_in, drive_in
from drivefeed.catalog.tables import items
from drivefeed.catalog.tree import item_of, lineages

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.delta import TreeItem
    from drivefeed.domain.model import Connection

_CHUNK = 1000


@dataclass(frozen=True, slots=True)
class Unasked:
    """Some files for whose permissions is to be asked.

    Attributes:
        cursor: where to look for more of them; None where there are none.
    """

    files: tuple[TreeItem, ...]
    cursor: str | None


async def known_connection(catalog: Catalog, connection_id: str) -> Connection | None:
    """Return a connection by its id; None where there is none (any more)."""
    async with catalog.read() as connection:
        return await connection_in(connection, connection_id)


async def unasked(
    catalog: Catalog,
    drive: Drive,
    wanting: Sequence[Connection],
    *,
    cursor: str | None,
    only_dirty: bool,
) -> Unasked:
    """Look through a piece of the tree for files that only their permissions may keep out.

    Args:
        wanting: connections of the drive, those that ask for no permissions among them or not.
        cursor: the item after which to look; None for the beginning.
        only_dirty: whether to look only at items about which a decision is due.
    """
    where = [
        items.c.drive_id == drive.drive_id,
        items.c.deleted.is_(False),
        items.c.own_permissions.is_(None),
        items.c.kind.not_in(FOLDERS),
    ]
    if only_dirty:
        where.append(items.c.dirty)
    if cursor is not None:
        where.append(items.c.item_id > cursor)
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(items).where(and_(*where)).order_by(items.c.item_id).limit(_CHUNK)
        )
        found = [item_of(row) for row in rows.mappings()]
        lines = await lineages(connection, drive.drive_id, found)
        forgotten = await forgotten_items(connection, drive, found)
        rooted = await rooted_connections(connection, drive, wanting)
    asked_for = [
        one
        for one in found
        if lines[one.item_id].complete
        and any(
            awaits_permissions(verdict_of(each, one, lines[one.item_id], one.item_id in forgotten))
            for each in rooted
        )
    ]
    return Unasked(tuple(asked_for), found[-1].item_id if len(found) == _CHUNK else None)


async def note_permissions(catalog: Catalog, drive: Drive, told: Mapping[TreeItem, bool]) -> None:
    """Keep what was told of files; of those that changed since they were asked about, nothing.

    Args:
        told: whether each has permissions of its own, by the row with which it was asked about.
    """
    async with catalog.write("permissions.told", beside=True) as connection:
        await drive_in(connection, drive.drive_id, lock=True)
        for one, is_own in told.items():
            await connection.execute(
                update(items)
                .where(
                    items.c.drive_id == drive.drive_id,
                    items.c.item_id == one.item_id,
                    items.c.own_permissions.is_(None),
                    items.c.etag.is_not_distinct_from(one.etag),
                )
                .values(own_permissions=is_own)
            )

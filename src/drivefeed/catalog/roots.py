"""Connected folders: which of them are there, and what becomes of a connection whose is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select, update

from drivefeed.catalog.tables import connections as connections_table
from drivefeed.catalog.tables import coverage
from drivefeed.catalog.tree import items_told, lineages, mark_dirty
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.delta import TreeItem
    from drivefeed.domain.model import Connection


async def rooted_connections(
    connection: AsyncConnection,
    drive: Drive,
    connections: Sequence[Connection],
    *,
    told: Mapping[str, TreeItem] | None = None,
) -> list[Connection]:
    """Leave out connections whose folder is gone; they wait for a person and lose nothing."""
    ids = {each.root_item_id for each in connections}
    roots = await items_told(connection, drive.drive_id, ids, told or {})
    lines = await lineages(connection, drive.drive_id, roots.values(), told=told)
    there: list[Connection] = []
    for each in connections:
        root = roots.get(each.root_item_id)
        if root is None:
            continue
        line = lines[root.item_id]
        if not root.deleted and line.alive and line.complete:
            there.append(each)
    return there


async def look_at_roots(
    connection: AsyncConnection, drive: Drive, connections: Sequence[Connection]
) -> tuple[list[Connection], bool]:
    """After a completed round, pause connections whose folder is gone and welcome it back.

    Nothing was noted for a connection while its folder was gone. What left the folder in that time
    does not lie in it when it is back, so all that the connection has is to be decided again.

    Returns:
        The connections whose folder is there, and whether decisions are to be made again first.
    """
    there = await rooted_connections(connection, drive, connections)
    ids = {each.connection_id for each in there}
    back: list[str] = []
    for each in connections:
        is_gone = each.connection_id not in ids
        if is_gone and each.attention is not Reason.FOLDER_GONE:
            attention: Reason | None = Reason.FOLDER_GONE
        elif not is_gone and each.attention is Reason.FOLDER_GONE:
            attention = None
            back.append(each.connection_id)
        else:
            continue
        await connection.execute(
            update(connections_table)
            .where(connections_table.c.id == each.connection_id)
            .values(attention=attention)
        )
    for connection_id in back:
        covered = select(coverage.c.item_id).where(coverage.c.connection_id == connection_id)
        await mark_dirty(connection, drive.drive_id, covered)
    return there, bool(back)

"""Connections with the place they are: account, drive and folder, as people know them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select

from drivefeed.catalog.receipts import DISCONNECTED
from drivefeed.catalog.sources import connection_of
from drivefeed.catalog.tables import accounts, connections, drives
from drivefeed.catalog.tree import known_items, lineages

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection


@dataclass(frozen=True, slots=True)
class Place:
    """A connection and its place.

    Attributes:
        drive_id: the drive in the catalog.
        remote_drive_id: the drive as Microsoft names it.
        folder: the path below the drive's root as far as it was listed; empty for all of it.
        url: how whoever connected it named it.
        declared: whether a file declares it.
        plan: what its plan counted: ``files``, ``bytes``, ``pages``, ``at``.
    """

    connection: Connection
    account_id: str
    account_name: str
    drive_id: str
    drive_name: str
    remote_drive_id: str
    folder: str
    url: str | None
    declared: bool
    plan: dict[str, int] | None


async def places_of(catalog: Catalog, connection_id: str | None = None) -> list[Place]:
    """Return one connection with its place, or all of them, the oldest first."""
    async with catalog.read() as connection:
        return await places_in(connection, connection_id)


async def places_in(connection: AsyncConnection, connection_id: str | None = None) -> list[Place]:
    """Return connections with their places, within a transaction."""
    wanted = (
        select(
            connections,
            DISCONNECTED.label("disconnected"),
            drives.c.name.label("drive_name"),
            drives.c.remote_id,
            accounts.c.id.label("account_id"),
            accounts.c.name.label("account_name"),
        )
        .join(drives, drives.c.id == connections.c.drive_id)
        .join(accounts, accounts.c.id == drives.c.account_id)
        .order_by(connections.c.created_at, connections.c.id)
    )
    if connection_id is not None:
        wanted = wanted.where(connections.c.id == connection_id)
    rows = list((await connection.execute(wanted)).mappings())
    return [
        Place(
            connection=connection_of(row),
            account_id=row["account_id"],
            account_name=row["account_name"],
            drive_id=row["drive_id"],
            drive_name=row["drive_name"],
            remote_drive_id=row["remote_id"],
            folder=await folder_path(connection, row["drive_id"], row["root_item_id"]),
            url=row["url"],
            declared=row["declared"],
            plan=json.loads(row["plan"]) if row["plan"] else None,
        )
        for row in rows
    ]


async def folder_path(connection: AsyncConnection, drive_id: str, item_id: str) -> str:
    """Return the path of an item below its drive's root, as far as that was listed."""
    found = await known_items(connection, drive_id, [item_id])
    one = found.get(item_id)
    if one is None:
        return ""
    line = (await lineages(connection, drive_id, [one]))[item_id]
    # The drive's own root has a name that nobody sees.
    return "/".join([folder.name for folder in (*line.folders, one)][1:])

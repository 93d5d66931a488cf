"""Which account belongs to whom, and through which a drive is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select

from drivefeed.catalog.sources import connection_of
from drivefeed.catalog.tables import accounts, connections, drives, orgs

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection


@dataclass(frozen=True, slots=True)
class Route:
    """An account, and the org that gave it."""

    account_id: str
    name: str
    org_id: str
    org: str


@dataclass(frozen=True, slots=True)
class KnownDrive:
    """A drive that an org follows already, with its connections, the oldest first."""

    drive_id: str
    account_id: str
    connections: tuple[Connection, ...]


async def all_routes(catalog: Catalog) -> list[Route]:
    """Return all accounts, by org and in the order in which they were made."""
    asked = (
        select(accounts.c.id, accounts.c.name, accounts.c.org_id, orgs.c.name.label("org"))
        .join(orgs, orgs.c.id == accounts.c.org_id)
        .order_by(orgs.c.created_at, accounts.c.created_at, accounts.c.id)
    )
    async with catalog.read() as connection:
        rows = await connection.execute(asked)
        return [Route(row.id, row.name, row.org_id, row.org) for row in rows]


async def known_drive(catalog: Catalog, org_id: str, key: str) -> KnownDrive | None:
    """Return an org's drive by its key (see :func:`drivefeed.domain.identity.drive_key`)."""
    async with catalog.read() as connection:
        found = await connection.execute(
            select(drives.c.id, drives.c.account_id).where(
                drives.c.org_id == org_id, drives.c.drive_key == key
            )
        )
        row = found.one_or_none()
        if row is None:
            return None
        rows = await connection.execute(
            select(connections)
            .where(connections.c.drive_id == row.id)
            .order_by(connections.c.created_at, connections.c.id)
        )
        known = tuple(connection_of(one) for one in rows.mappings())
    return KnownDrive(str(row.id), str(row.account_id), known)


async def connection_names(catalog: Catalog, org_id: str) -> set[str]:
    """Return the names of an org's connections."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(connections.c.name).where(connections.c.org_id == org_id)
        )
        return set(rows.scalars())

"""Which account belongs to whom, and through which a drive is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select, update

from drivefeed.catalog.account_states import AccountState
from drivefeed.catalog.accounts import SignInKind
from drivefeed.catalog.audit_log import record
from drivefeed.catalog.sources import connection_of
from drivefeed.catalog.tables import accounts, connections, drives, orgs

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
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


async def other_routes(catalog: Catalog, drive: Drive) -> list[str]:
    """Return the other accounts of a drive's org that see whole drives, if they see them at all.

    Somebody who signed in may see a part of it only, and the rest would look deleted; so these
    are the accounts that sign in as an app, in the same cloud.
    """
    own = select(accounts.c.cloud).where(accounts.c.id == drive.account_id).scalar_subquery()
    asked = (
        select(accounts.c.id)
        .where(
            accounts.c.org_id == drive.org_id,
            accounts.c.id != drive.account_id,
            accounts.c.cloud == own,
            accounts.c.sign_in.is_not(None),
            accounts.c.sign_in != SignInKind.USER,
            accounts.c.state == AccountState.OK,
        )
        .order_by(accounts.c.created_at, accounts.c.id)
    )
    async with catalog.read() as connection:
        return [str(key) for key in (await connection.execute(asked)).scalars()]


async def read_through(catalog: Catalog, drive: Drive, account_id: str, *, why: str) -> None:
    """Read a drive through another account from now on, if nobody else changed that meanwhile.

    Args:
        why: what became of the account so far, for the audit log.
    """
    async with catalog.write("drive.route") as connection:
        changed = await connection.execute(
            update(drives)
            .where(drives.c.id == drive.drive_id, drives.c.account_id == drive.account_id)
            .values(account_id=account_id)
        )
        if changed.rowcount:
            await record(
                connection,
                org_id=drive.org_id,
                actor="drivefeed",
                action="drive.account_changed",
                subject_id=drive.drive_id,
                before={"account_id": drive.account_id, "why": why},
                after={"account_id": account_id},
            )


async def connection_names(catalog: Catalog, org_id: str) -> set[str]:
    """Return the names of an org's connections."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(connections.c.name).where(connections.c.org_id == org_id)
        )
        return set(rows.scalars())

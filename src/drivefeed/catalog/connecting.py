"""Make orgs, accounts, drives and connections known, once each."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert as plain_insert
from sqlalchemy import select, update

from drivefeed.catalog.audit_log import record
from drivefeed.catalog.changed_connections import look_again, scan_soon
from drivefeed.catalog.engine import now_of
from drivefeed.catalog.receipts import DISCONNECTED, SETTINGS, forget_receipts
from drivefeed.catalog.sources import connection_of, drive_in
from drivefeed.catalog.tables import accounts, connections, drives, orgs
from drivefeed.domain.errors import NotFound
from drivefeed.domain.identity import drive_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Policy
    from drivefeed.domain.remote import RemoteDrive


async def ensure_org(catalog: Catalog, name: str) -> str:
    """Return the id of the org with that name, made if there is none."""
    async with catalog.write("org.ensure") as connection:
        found = await connection.execute(select(orgs.c.id).where(orgs.c.name == name))
        org_id = found.scalar_one_or_none()
        if org_id is None:
            org_id = catalog.ids.new()
            await connection.execute(
                plain_insert(orgs).values(id=org_id, name=name, created_at=catalog.clock.now())
            )
    return str(org_id)


async def ensure_account(catalog: Catalog, org_id: str, name: str) -> str:
    """Return the id of an org's account with that name, made if there is none."""
    async with catalog.write("account.ensure") as connection:
        found = await connection.execute(
            select(accounts.c.id).where(accounts.c.org_id == org_id, accounts.c.name == name)
        )
        account_id = found.scalar_one_or_none()
        if account_id is None:
            account_id = catalog.ids.new()
            await connection.execute(
                plain_insert(accounts).values(
                    id=account_id, org_id=org_id, name=name, created_at=catalog.clock.now()
                )
            )
    return str(account_id)


async def account_org(catalog: Catalog, account_id: str) -> str:
    """Return the id of the org that owns an account.

    Raises:
        NotFound: there is no such account.
    """
    async with catalog.read() as connection:
        found = await connection.execute(
            select(accounts.c.org_id).where(accounts.c.id == account_id)
        )
        org_id = found.scalar_one_or_none()
    if org_id is None:
        raise NotFound(f"There is no account {account_id} in the catalog.")
    return str(org_id)


async def drive_at(catalog: Catalog, org_id: str, cloud: str, remote_id: str) -> str | None:
    """Return the id of an org's drive by Microsoft's id, or None where it is not known yet."""
    async with catalog.read() as connection:
        found = await connection.execute(
            select(drives.c.id).where(
                drives.c.org_id == org_id, drives.c.drive_key == drive_key(cloud, remote_id)
            )
        )
        return found.scalar_one_or_none()


async def ensure_drive(
    catalog: Catalog,
    *,
    org_id: str,
    account_id: str,
    cloud: str,
    remote: RemoteDrive,
    interval_ms: int,
) -> str:
    """Return the id of an org's drive, made if it is new; its first sync is not due yet.

    Args:
        interval_ms: how often it is asked for changes where its connections do not say.
    """
    async with catalog.write("drive.ensure") as connection:
        drive_id = await ensure_drive_in(
            connection,
            fresh_id=catalog.ids.new(),
            org_id=org_id,
            account_id=account_id,
            cloud=cloud,
            remote=remote,
            interval_ms=interval_ms,
        )
        await connection.execute(
            update(drives)
            .where(drives.c.id == drive_id)
            .values(account_id=account_id, interval_ms=interval_ms)
        )
    return drive_id


async def ensure_drive_in(
    connection: AsyncConnection,
    *,
    fresh_id: str,
    org_id: str,
    account_id: str,
    cloud: str,
    remote: RemoteDrive,
    interval_ms: int,
) -> str:
    """Return the id of an org's drive within a transaction; one that is known stays as it is.

    Args:
        fresh_id: its id, if it is new.
    """
    key = drive_key(cloud, remote.drive_id)
    found = await connection.execute(
        select(drives.c.id).where(drives.c.org_id == org_id, drives.c.drive_key == key)
    )
    drive_id = found.scalar_one_or_none()
    if drive_id is not None:
        return str(drive_id)
    await connection.execute(
        plain_insert(drives).values(
            id=fresh_id,
            org_id=org_id,
            account_id=account_id,
            drive_key=key,
            remote_id=remote.drive_id,
            drive_type=remote.drive_type,
            name=remote.name,
            web_url=remote.web_url,
            root_item_id=remote.root_id,
            interval_ms=interval_ms,
            created_at=now_of(connection),
        )
    )
    return fresh_id


async def policy_at(catalog: Catalog, drive_id: str, root_item_id: str) -> Policy | None:
    """Return the policy of the connection of a folder, or None where it is not connected."""
    async with catalog.read() as connection:
        row = await _known(connection, drive_id, root_item_id)
    return None if row is None else connection_of(row).policy


async def connect(
    catalog: Catalog,
    *,
    drive_id: str,
    root_item_id: str,
    name: str,
    policy: Policy,
    actor: str = SETTINGS,
) -> str:
    """Connect a folder, or change the policy of one that is connected; return its id."""
    wanted = Wanted(drive_id, root_item_id, name, policy)
    async with catalog.write("connect") as connection:
        return await connect_in(connection, wanted, fresh_id=catalog.ids.new(), actor=actor)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A folder as somebody wants it connected.

    Attributes:
        drive_id: the drive in the catalog.
        plan: what its plan counted: ``files``, ``bytes``, ``pages``, ``at``.
        url: how it was named; None leaves what is known.
        declared: whether a file declares it; None leaves that as it is.
    """

    drive_id: str
    root_item_id: str
    name: str
    policy: Policy
    plan: Mapping[str, int] | None = None
    url: str | None = None
    declared: bool | None = None


async def connect_in(
    connection: AsyncConnection, wanted: Wanted, *, fresh_id: str, actor: str
) -> str:
    """Connect a folder, or change a connection, within a transaction.

    The tree is scanned anew only where other files may be admitted. Where nothing changes,
    nothing is written: not even the plan, whose numbers stay those of when it was applied.

    Args:
        fresh_id: the connection's id, if it is new.
        actor: who does it, for the audit log.
    """
    drive = await drive_in(connection, wanted.drive_id)
    known = await _known(connection, wanted.drive_id, wanted.root_item_id)
    is_left = known is not None and known["disconnected"]
    # What a person stopped for good, no file brings back that is applied every night.
    is_back = is_left and actor != SETTINGS and not wanted.declared
    if is_back or not is_left:
        await forget_receipts(connection, wanted.drive_id, wanted.root_item_id, actor=actor)
    before = None if known is None else connection_of(known)
    values: dict[str, Any] = {
        "name": wanted.name,
        "policy": json.dumps(asdict(wanted.policy)),
        "interval_ms": wanted.policy.interval_ms,
    }
    if wanted.url is not None:
        values["url"] = wanted.url
    if wanted.declared is not None:
        values["declared"] = wanted.declared
    if is_back:
        values["paused"] = False
    is_rescanned = is_back or before is None or before.policy.scope != wanted.policy.scope
    if is_rescanned:
        plan = None if wanted.plan is None else json.dumps(dict(wanted.plan))
        values |= {"plan": plan, "admitting": True, "admit_cursor": None}
    if before is not None and known is not None:
        connection_id = before.connection_id
        same = before.policy == wanted.policy and before.name == wanted.name
        others = {key: values[key] for key in ("url", "declared") if key in values}
        if same and not is_back and all(known[key] == value for key, value in others.items()):
            return connection_id
        await connection.execute(
            update(connections).where(connections.c.id == connection_id).values(values)
        )
        await look_again(connection, before, wanted.policy, is_back=is_back)
    else:
        connection_id = fresh_id
        await connection.execute(
            plain_insert(connections).values(
                id=connection_id,
                org_id=drive.org_id,
                drive_id=drive.drive_id,
                root_item_id=wanted.root_item_id,
                created_at=now_of(connection),
                **values,
            )
        )
    await record(
        connection,
        org_id=drive.org_id,
        actor=actor,
        action="connection.added" if before is None else "connection.changed",
        subject_id=connection_id,
        before=None if before is None else _told(before.name, before.policy),
        after=_told(wanted.name, wanted.policy),
    )
    if is_rescanned:
        await scan_soon(connection, drive, connection_id)
    return connection_id


async def _known(
    connection: AsyncConnection, drive_id: str, root_item_id: str
) -> RowMapping | None:
    found = await connection.execute(
        select(connections, DISCONNECTED.label("disconnected")).where(
            connections.c.drive_id == drive_id, connections.c.root_item_id == root_item_id
        )
    )
    return found.mappings().one_or_none()


def _told(name: str, policy: Policy) -> dict[str, Any]:
    return {"name": name, "policy": asdict(policy)}

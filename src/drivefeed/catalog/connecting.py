"""Make orgs, accounts, drives and connections known, once each."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert as plain_insert
from sqlalchemy import select, update

from drivefeed.catalog import reminders
from drivefeed.catalog.documents import PAYLOAD_SCHEMA
from drivefeed.catalog.sources import drive_in, wake_drive
from drivefeed.catalog.tables import accounts, connections, drives, orgs
from drivefeed.domain.identity import drive_key

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Policy
    from drivefeed.domain.remote import RemoteDrive


async def ensure_org(catalog: Catalog, name: str) -> str:
    """Return the id of the org with that name, made if there is none."""
    async with catalog.write("org") as connection:
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
    async with catalog.write("account") as connection:
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


async def ensure_drive(
    catalog: Catalog,
    *,
    org_id: str,
    account_id: str,
    cloud: str,
    remote: RemoteDrive,
    interval_ms: int,
) -> str:
    """Return the id of an org's drive, made if it is new, and make its first sync due."""
    key = drive_key(cloud, remote.drive_id)
    async with catalog.write("drive") as connection:
        found = await connection.execute(
            select(drives.c.id).where(drives.c.org_id == org_id, drives.c.drive_key == key)
        )
        drive_id = found.scalar_one_or_none()
        if drive_id is None:
            drive_id = catalog.ids.new()
            await connection.execute(
                plain_insert(drives).values(
                    id=drive_id,
                    org_id=org_id,
                    account_id=account_id,
                    drive_key=key,
                    remote_id=remote.drive_id,
                    drive_type=remote.drive_type,
                    name=remote.name,
                    web_url=remote.web_url,
                    root_item_id=remote.root_id,
                    interval_ms=interval_ms,
                    created_at=catalog.clock.now(),
                )
            )
        else:
            await connection.execute(
                update(drives)
                .where(drives.c.id == drive_id)
                .values(account_id=account_id, interval_ms=interval_ms)
            )
    return str(drive_id)


async def connect(
    catalog: Catalog, *, drive_id: str, root_item_id: str, name: str, policy: Policy
) -> str:
    """Connect a folder, or change the policy of one that is connected; its scan becomes due.

    Returns:
        The connection's id.
    """
    now = catalog.clock.now()
    async with catalog.write("connect") as connection:
        drive = await drive_in(connection, drive_id)
        found = await connection.execute(
            select(connections.c.id, connections.c.policy).where(
                connections.c.drive_id == drive_id, connections.c.root_item_id == root_item_id
            )
        )
        known = found.mappings().one_or_none()
        wanted = json.dumps(asdict(policy))
        if known is not None and known["policy"] == wanted:
            return str(known["id"])
        values: dict[str, Any] = {
            "name": name,
            "policy": wanted,
            "admitting": True,
            "admit_cursor": None,
        }
        if known is None:
            connection_id = catalog.ids.new()
            await connection.execute(
                plain_insert(connections).values(
                    id=connection_id,
                    org_id=drive.org_id,
                    drive_id=drive_id,
                    root_item_id=root_item_id,
                    created_at=now,
                    **values,
                )
            )
        else:
            connection_id = str(known["id"])
            await connection.execute(
                update(connections).where(connections.c.id == connection_id).values(values)
            )
        await reminders.put(
            connection,
            subject_id=connection_id,
            org_id=drive.org_id,
            stage="admit",
            due_at=now,
            payload={
                "schema": PAYLOAD_SCHEMA,
                "org_id": drive.org_id,
                "connection_id": connection_id,
            },
        )
        await wake_drive(connection, drive, due_at=now)
    return connection_id

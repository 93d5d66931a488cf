"""What is looked at again when a connection is another one than it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from drivefeed.catalog import reminders
from drivefeed.catalog.documents import PAYLOAD_SCHEMA
from drivefeed.catalog.engine import now_of
from drivefeed.catalog.sources import wake_drive
from drivefeed.catalog.tables import coverage, imports
from drivefeed.catalog.tree import mark_dirty
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.sources import Drive


async def decide_anew(connection: AsyncConnection, drive: Drive, connection_id: str) -> None:
    """Nothing was noted for a connection while it was disconnected, not even what went."""
    mine = coverage.c.connection_id == connection_id
    await mark_dirty(connection, drive.drive_id, select(coverage.c.item_id).where(mine))


async def end_quiet_hours(connection: AsyncConnection, connection_id: str) -> None:
    """What waits for the end of the hours that there were is looked at again under the new ones."""
    held = (
        select(imports.c.id)
        .join(coverage, coverage.c.document_id == imports.c.document_id)
        .where(coverage.c.connection_id == connection_id, imports.c.hold == Reason.QUIET_HOURS)
    )
    for import_id in (await connection.execute(held)).scalars().all():
        await reminders.postpone(connection, import_id, due_at=now_of(connection))


async def scan_soon(connection: AsyncConnection, drive: Drive, connection_id: str) -> None:
    """Have the tree of a drive decided for a connection, and its changes asked for."""
    now = now_of(connection)
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

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
    from drivefeed.domain.model import Connection, Policy


async def look_again(
    connection: AsyncConnection, before: Connection, policy: Policy, *, is_back: bool
) -> None:
    """Look again at what was decided, or waits, under what a connection was before.

    Args:
        is_back: whether it was disconnected: nothing was noted for it, not even what went.
    """
    if is_back:
        covered = select(coverage.c.item_id).where(coverage.c.connection_id == before.connection_id)
        await mark_dirty(connection, before.drive_id, covered)
    if before.policy.quiet_hours != policy.quiet_hours:
        await _end_quiet_hours(connection, before.connection_id)


async def _end_quiet_hours(connection: AsyncConnection, connection_id: str) -> None:
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

"""An account can sign in again: what waited for it goes on from where it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from drivefeed.catalog.sources import drive_of, wake_drive
from drivefeed.catalog.tables import documents, drives, imports
from drivefeed.catalog.waiting import clear
from drivefeed.domain.access import OF_ACCOUNT, OF_PLACE
from drivefeed.domain.lifecycle import State
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog

_OF_ACCOUNTS = sorted(OF_ACCOUNT | OF_PLACE)
"""What a refused sign-in, or a refused right, asks a person for."""


async def resume_account(catalog: Catalog, account_id: str) -> int:
    """Make its drives due now, and its imports that asked for a person, or for a right.

    Returns:
        How many imports.

    Nothing is imported anew: positions and states are as they were.
    """
    now = catalog.clock.now()
    async with catalog.write("resume") as connection:
        rows = await connection.execute(select(drives).where(drives.c.account_id == account_id))
        for row in rows.mappings().all():
            await wake_drive(connection, drive_of(row), due_at=now)
    async with catalog.read() as connection:
        asking = await connection.execute(
            select(imports.c.id)
            .join(documents, documents.c.id == imports.c.document_id)
            .join(drives, drives.c.id == documents.c.drive_id)
            .where(
                drives.c.account_id == account_id,
                # Only what is not stored yet reads the source.
                ((imports.c.state == State.DISCOVERED) & imports.c.attention.in_(_OF_ACCOUNTS))
                | (
                    (imports.c.state == State.REJECTED)
                    & (imports.c.reason == Reason.DOWNLOAD_FORBIDDEN)
                    & (documents.c.wanted_import_id == imports.c.id)
                ),
            )
        )
        woken = [str(key) for key in asking.scalars()]
    for import_id in woken:
        await clear(catalog, import_id, event="resumed")
    return len(woken)

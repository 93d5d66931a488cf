"""One file forgotten: its content goes at once, and no listing brings it back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select, update

from drivefeed.catalog.audit_log import record
from drivefeed.catalog.erasing import erase_documents
from drivefeed.catalog.sources import drive_in, wake_drive
from drivefeed.catalog.tables import coverage, documents, drives, items
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog


async def forget(catalog: Catalog, document_id: str, *, actor: str) -> None:
    """Forget a file: every connection skips it from now on, and its content is erased."""
    async with catalog.write("forget") as connection:
        org_id = await connection.scalar(
            update(documents)
            .where(documents.c.id == document_id)
            .values(forgotten=True)
            .returning(documents.c.org_id)
        )
        if org_id is None:
            return
        await connection.execute(
            update(coverage)
            .where(coverage.c.document_id == document_id)
            .values(admitted=False, reason=Reason.FORGOTTEN, leaving=None)
        )
        await erase_documents(connection, [document_id], now=catalog.clock.now())
        await record(
            connection,
            org_id=org_id,
            actor=actor,
            action="document.forgotten",
            subject_id=document_id,
        )


async def remember(catalog: Catalog, document_id: str, *, actor: str) -> None:
    """Undo that a file was forgotten: it is decided about anew, as if it had just been listed."""
    async with catalog.write("remember") as connection:
        found = await connection.execute(
            update(documents)
            .where(documents.c.id == document_id)
            .values(forgotten=False)
            .returning(documents.c.org_id, documents.c.drive_id, documents.c.item_id)
        )
        row = found.one_or_none()
        if row is None:
            return
        await record(
            connection,
            org_id=row.org_id,
            actor=actor,
            action="document.remembered",
            subject_id=document_id,
        )
        if row.drive_id is None:
            return
        drive = await drive_in(connection, row.drive_id, lock=True)
        await connection.execute(
            update(items)
            .where(items.c.drive_id == row.drive_id, items.c.item_id == row.item_id)
            .values(dirty=True)
        )
        if drive.between_rounds:
            await connection.execute(
                update(drives).where(drives.c.id == row.drive_id).values(settling=True)
            )
        await wake_drive(connection, drive, due_at=catalog.clock.now())


async def forgotten_ids(catalog: Catalog, document_ids: list[str]) -> set[str]:
    """Return those of the documents that are forgotten."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(documents.c.id).where(
                documents.c.id.in_(document_ids), documents.c.forgotten.is_(True)
            )
        )
        return {str(key) for key in rows.scalars()}

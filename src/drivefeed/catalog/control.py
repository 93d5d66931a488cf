"""What people change by hand: pause, resume, retry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select, update

from drivefeed.catalog.sources import all_connections, drive_in, wake_drive
from drivefeed.catalog.tables import connections, coverage, documents, imports
from drivefeed.catalog.waiting import clear
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection


async def matching_connections(catalog: Catalog, which: str | None) -> list[Connection]:
    """Return connections by id or name, whatever the case; all of them for None."""
    found = await all_connections(catalog)
    if which is None:
        return found
    return [
        one
        for one in found
        if one.connection_id == which or one.name.casefold() == which.casefold()
    ]


async def set_paused(catalog: Catalog, one: Connection, *, paused: bool) -> int:
    """Pause or resume a connection; return how many imports a resume woke."""
    now = catalog.clock.now()
    async with catalog.write("pause") as connection:
        await connection.execute(
            update(connections).where(connections.c.id == one.connection_id).values(paused=paused)
        )
        if paused:
            return 0
        drive = await drive_in(connection, one.drive_id)
        await wake_drive(connection, drive, due_at=now)
        parked = await connection.execute(
            select(imports.c.id)
            .join(documents, documents.c.id == imports.c.document_id)
            .join(coverage, coverage.c.document_id == documents.c.id)
            .where(
                coverage.c.connection_id == one.connection_id,
                imports.c.hold == Reason.PAUSED,
            )
        )
        woken = [str(key) for key in parked.scalars()]
    for import_id in woken:
        await clear(catalog, import_id, event="resumed")
    return len(woken)


async def retry_imports(catalog: Catalog, import_ids: Sequence[str]) -> None:
    """Try imports again that failed, are held, or wait for a person."""
    for import_id in import_ids:
        await clear(catalog, import_id)

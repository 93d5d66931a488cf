"""What people change by hand: pause, resume, retry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select, update

from drivefeed.catalog.audit_log import record
from drivefeed.catalog.engine import now_of
from drivefeed.catalog.sources import all_connections, connection_of, drive_in, wake_drive
from drivefeed.catalog.tables import connections, coverage, documents, drives, imports
from drivefeed.catalog.waiting import clear
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.names import usable_name
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection


async def matching_connections(catalog: Catalog, which: str | None) -> list[Connection]:
    """Return connections by id or name, whatever the case; all of them for None."""
    return [one for one in await all_connections(catalog) if _is_called(one, which)]


def _is_called(one: Connection, which: str | None) -> bool:
    if which is None:
        return True
    return one.connection_id == which or one.name.casefold() == which.casefold()


async def rename(catalog: Catalog, one: Connection, name: str, *, actor: str) -> None:
    """Give a connection another name.

    Raises:
        NeedsAttention: it is no name, or another connection of the org has it.
    """
    name = usable_name(name)
    async with catalog.write("connection.rename") as connection:
        taken = await connection.scalar(
            select(connections.c.id).where(
                connections.c.org_id == one.org_id,
                func.lower(connections.c.name) == name.lower(),
                connections.c.id != one.connection_id,
            )
        )
        if taken is not None:
            raise NeedsAttention(
                f"Another connection is called '{name}'. Choose another name.",
                reason=Reason.MISCONFIGURED,
            )
        if name == one.name:
            return
        await connection.execute(
            update(connections).where(connections.c.id == one.connection_id).values(name=name)
        )
        await record(
            connection,
            org_id=one.org_id,
            actor=actor,
            action="connection.renamed",
            subject_id=one.connection_id,
            before={"name": one.name},
            after={"name": name},
        )


async def set_paused(
    catalog: Catalog, one: Connection, *, paused: bool, actor: str = "drivefeed"
) -> int:
    """Pause or resume a connection; return how many imports a resume woke."""
    async with catalog.write("connection.pause") as connection:
        await set_paused_in(connection, one, paused=paused, actor=actor)
    return 0 if paused else await wake_parked(catalog, one.connection_id)


async def set_paused_in(
    connection: AsyncConnection, one: Connection, *, paused: bool, actor: str
) -> None:
    """Pause or resume a connection within a transaction; see :func:`wake_parked` for the rest.

    Whoever does so decides it: that a file stopped declaring it does not count any more.
    """
    if paused != one.paused:
        await record(
            connection,
            org_id=one.org_id,
            actor=actor,
            action="connection.paused" if paused else "connection.resumed",
            subject_id=one.connection_id,
        )
    await connection.execute(
        update(connections)
        .where(connections.c.id == one.connection_id)
        .values(paused=paused, pruned=False)
    )
    if not paused:
        drive = await drive_in(connection, one.drive_id)
        await wake_drive(connection, drive, due_at=now_of(connection))


async def wake_parked(catalog: Catalog, connection_id: str) -> int:
    """Let imports go on that were parked while their connection was paused; return how many."""
    async with catalog.read() as connection:
        parked = await connection.execute(
            select(imports.c.id)
            .join(documents, documents.c.id == imports.c.document_id)
            .join(coverage, coverage.c.document_id == documents.c.id)
            .where(
                coverage.c.connection_id == connection_id,
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


async def retry_drives(
    catalog: Catalog, which: str | None, *, reason: str | None = None
) -> list[Connection]:
    """Have drives asked again at once that wait for a person.

    Args:
        which: the id or name of a connection on the drive; None for all drives.
        reason: only drives that wait for this reason.

    Returns:
        The connections that wait with their drive.
    """
    waits = drives.c.attention.is_not(None) if reason is None else drives.c.attention == reason
    waiting = (
        select(connections)
        .join(drives, drives.c.id == connections.c.drive_id)
        .where(waits, connections.c.paused.is_(False))
        .order_by(connections.c.created_at)
    )
    async with catalog.write("drives.retry") as connection:
        rows = await connection.execute(waiting)
        found = [one for one in map(connection_of, rows.mappings()) if _is_called(one, which)]
        for drive_id in sorted({one.drive_id for one in found}):
            drive = await drive_in(connection, drive_id)
            await wake_drive(connection, drive, due_at=now_of(connection))
    return found

"""Reminders of many subjects at once; see :mod:`drivefeed.catalog.reminders`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from drivefeed.catalog.dialect import batches
from drivefeed.catalog.reminder_rows import put_statement
from drivefeed.catalog.reminders import REST
from drivefeed.catalog.tables import reminders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection


async def put_all(connection: AsyncConnection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows of ``due_row`` for many subjects; every earlier delivery of them becomes void."""
    if rows:
        await connection.execute(put_statement(connection.dialect.name), list(rows))


async def rest_all(connection: AsyncConnection, subject_ids: Sequence[str]) -> None:
    """Nothing is due for many subjects; their rows stay for their numbers."""
    if subject_ids:
        await connection.execute(REST, [{"of": key} for key in subject_ids])


async def stages_of(connection: AsyncConnection, subject_ids: Sequence[str]) -> dict[str, str]:
    """Return the stages that are due for subjects; their rows stay so until the commit."""
    found: dict[str, str] = {}
    for batch in batches(sorted(subject_ids)):
        rows = await connection.execute(
            select(reminders.c.subject_id, reminders.c.stage)
            .where(reminders.c.subject_id.in_(batch), reminders.c.due_at.is_not(None))
            .order_by(reminders.c.subject_id)
            .with_for_update()
        )
        found |= {row.subject_id: row.stage for row in rows}
    return found

"""Calls of backends: a job ended, so its poll need not wait. Nothing a call says is believed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import select

from drivefeed.catalog import reminders
from drivefeed.catalog.tables import imports
from drivefeed.catalog.tables import reminders as reminder_rows
from drivefeed.domain.lifecycle import State

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog


async def poll_now(catalog: Catalog, backend: str, key: str) -> bool:
    """Make the poll of what was submitted under a key due now; tell whether that changed anything.

    It changes nothing where the backend has no such job at work, or its poll is due already, so
    that calls without end cost one look each.
    """
    import_id, _, round_ = key.rpartition(":")
    if not round_.isascii() or not round_.isdigit():
        return False
    now = catalog.clock.now()
    waiting = (
        select(imports.c.id)
        .join(reminder_rows, reminder_rows.c.subject_id == imports.c.id)
        .where(
            imports.c.id == import_id,
            imports.c.round == int(round_[:9]),
            imports.c.backend == backend,
            imports.c.state == State.SUBMITTED,
            imports.c.backend_job.is_not(None),
            reminder_rows.c.stage == "poll",
            reminder_rows.c.due_at > now,
        )
    )
    async with catalog.read() as connection:
        if (await connection.execute(waiting)).first() is None:
            return False
    async with catalog.write("poll_now") as connection:
        # Looked at again: a worker may have come in between.
        if (await connection.execute(waiting)).first() is None:
            return False
        await reminders.postpone(connection, import_id, due_at=now)
    return True

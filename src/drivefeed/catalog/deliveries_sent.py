"""Rows of the outbox that were sent: which are overdue, got lost, or are worked on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, bindparam, select, update

from drivefeed.catalog.deliveries import OF_NUMBER, not_locked, reminder_of
from drivefeed.catalog.dialect import batches
from drivefeed.catalog.reminders import free
from drivefeed.catalog.tables import reminders

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.deliveries import Reminder

_NOW = bindparam("now", type_=BigInteger)
_OVERDUE = (
    select(reminders)
    .where(reminders.c.due_at.is_not(None), reminders.c.remind_at <= _NOW, free(_NOW))
    .order_by(reminders.c.remind_at)
    .limit(bindparam("most", type_=BigInteger))
)


async def overdue(connection: AsyncConnection, *, now: int, limit: int) -> list[Reminder]:
    """Return rows that were sent, are past their time, and that nobody works on."""
    rows = await connection.execute(_OVERDUE, {"now": now, "most": limit})
    return [reminder_of(row) for row in rows.mappings()]


async def keep_waiting(
    connection: AsyncConnection, alive: Sequence[Reminder], *, remind_at: int
) -> None:
    """Look again later at rows whose delivery still waits in the queue."""
    free_ = await not_locked(connection, alive)
    rows = [
        {"of": one.subject_id, "named": one.number, "remind_at": remind_at}
        for one in alive
        if one.subject_id in free_
    ]
    if rows:
        await connection.execute(OF_NUMBER, rows)


async def send_again(connection: AsyncConnection, lost: Sequence[Reminder]) -> None:
    """Give rows whose delivery is gone a new number, so that they are sent again."""
    free_ = await not_locked(connection, lost)
    for one in lost:
        if one.subject_id not in free_:
            continue
        await connection.execute(
            update(reminders)
            .where(reminders.c.subject_id == one.subject_id, reminders.c.number == one.number)
            .values(number=reminders.c.number + 1, sent_at=None, remind_at=None)
        )


async def unclaimed(connection: AsyncConnection, numbers: Mapping[str, int]) -> list[Reminder]:
    """Return those rows that still have the number of their subject, are due and have no owner."""
    found: list[Reminder] = []
    for batch in batches(numbers):
        rows = await connection.execute(
            select(reminders).where(
                reminders.c.subject_id.in_(batch),
                reminders.c.due_at.is_not(None),
                reminders.c.owner.is_(None),
            )
        )
        found += [
            reminder_of(row)
            for row in rows.mappings()
            if row["number"] == numbers[row["subject_id"]]
        ]
    return found


async def count_current(connection: AsyncConnection, numbers: Mapping[str, int]) -> int:
    """Count subjects whose row still has this number; a delivery of another number is void."""
    found = 0
    for batch in batches(numbers):
        rows = await connection.execute(
            select(reminders.c.subject_id, reminders.c.number).where(
                reminders.c.subject_id.in_(batch)
            )
        )
        found += sum(row.number == numbers[row.subject_id] for row in rows)
    return found


async def unsend_all(connection: AsyncConnection) -> int:
    """The queue was emptied: every row counts as unsent. Return how many had been sent."""
    result = await connection.execute(
        update(reminders)
        .where(reminders.c.due_at.is_not(None), reminders.c.remind_at.is_not(None))
        .values(sent_at=None, remind_at=None)
    )
    return result.rowcount

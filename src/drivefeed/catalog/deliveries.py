"""Rows of the outbox as the relay sees them: what is to be sent, was sent, or got lost."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import BigInteger, and_, bindparam, exists, literal, select, union, update

from drivefeed.catalog.reminders import LANES, free
from drivefeed.catalog.tables import orgs, reminders
from drivefeed.ports import Stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import ColumnElement, CompoundSelect, RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.reminders import Instant


@dataclass(frozen=True, slots=True)
class Reminder:
    """A row that is due: what the relay turns into a delivery."""

    subject_id: str
    org_id: str
    stage: str
    number: int
    due_at: int
    lane: int
    payload: Mapping[str, str | int]


def _waiting(stage: str, lane: int, *, now: Instant, until: Instant) -> ColumnElement[bool]:
    return and_(
        reminders.c.stage == stage,
        reminders.c.lane == lane,
        reminders.c.due_at <= until,
        reminders.c.sent_at.is_(None),
        free(now),
    )


async def due(
    connection: AsyncConnection, stage: str, *, now: int, horizon_ms: int, limit: int
) -> list[Reminder]:
    """Return unsent rows due until ``now + horizon_ms``: urgent lanes first, orgs in turn.

    Each org's rows are read in the order of the index and no further than the limit, so that a
    backlog of hundreds of thousands costs no more than a short one.
    """
    found: list[Reminder] = []
    for lane in LANES:
        left = limit - len(found)
        if left <= 0:
            break
        where = _waiting(stage, lane, now=now, until=now + horizon_ms)
        turns: list[tuple[int, int, Reminder]] = []
        for org_id in await _orgs_waiting(connection, where):
            rows = await connection.execute(
                select(reminders)
                .where(where, reminders.c.org_id == org_id)
                .order_by(reminders.c.due_at)
                .limit(left)
            )
            turns += [
                (turn, row["due_at"], _reminder(row)) for turn, row in enumerate(rows.mappings())
            ]
        turns.sort(key=lambda one: one[:2])
        found += [one for _, _, one in turns[:left]]
    return found


async def _orgs_waiting(connection: AsyncConnection, where: ColumnElement[bool]) -> list[str]:
    waits = exists().where(where, reminders.c.org_id == orgs.c.id)
    rows = await connection.execute(select(orgs.c.id).where(waits).order_by(orgs.c.id))
    return [str(org_id) for org_id in rows.scalars()]


def _reminder(row: RowMapping) -> Reminder:
    return Reminder(
        subject_id=row["subject_id"],
        org_id=row["org_id"],
        stage=row["stage"],
        number=row["number"],
        due_at=row["due_at"],
        lane=row["lane"],
        payload=json.loads(row["payload"]),
    )


async def mark_sent(
    connection: AsyncConnection, sent: Sequence[Reminder], *, now: int, remind_at: int
) -> None:
    """Record that deliveries were made; rows that were written again since stay unsent."""
    for one in sent:
        await connection.execute(
            update(reminders)
            .where(reminders.c.subject_id == one.subject_id, reminders.c.number == one.number)
            .values(sent_at=now, remind_at=max(remind_at, one.due_at + remind_at - now))
        )


async def stages_due(connection: AsyncConnection, *, now: int, horizon_ms: int) -> list[str]:
    """Return the stages that have unsent rows due until ``now + horizon_ms``."""
    rows = await connection.execute(_probes(), {"now": now, "until": now + horizon_ms})
    found = {str(stage) for stage in rows.scalars()}
    return [stage for stage in Stage if stage in found]


@cache
def _probes() -> CompoundSelect[Any]:
    """One statement of small probes, built once: the relay asks every second of an idle day."""
    now, until = bindparam("now", type_=BigInteger), bindparam("until", type_=BigInteger)
    return union(
        *(
            select(literal(stage.value).label("stage"))
            .select_from(orgs)
            .where(
                exists().where(
                    _waiting(stage, lane, now=now, until=until), reminders.c.org_id == orgs.c.id
                )
            )
            for stage in Stage
            for lane in LANES
        )
    )


async def overdue(connection: AsyncConnection, *, now: int, limit: int) -> list[Reminder]:
    """Return rows that were sent, are past their time, and that nobody works on."""
    rows = await connection.execute(
        select(reminders)
        .where(reminders.c.due_at.is_not(None), reminders.c.remind_at <= now, free(now))
        .order_by(reminders.c.remind_at)
        .limit(limit)
    )
    return [_reminder(row) for row in rows.mappings()]


async def keep_waiting(
    connection: AsyncConnection, alive: Sequence[Reminder], *, remind_at: int
) -> None:
    """Look again later at rows whose delivery still waits in the queue."""
    for one in alive:
        await connection.execute(
            update(reminders)
            .where(reminders.c.subject_id == one.subject_id, reminders.c.number == one.number)
            .values(remind_at=remind_at)
        )


async def send_again(connection: AsyncConnection, lost: Sequence[Reminder]) -> None:
    """Give rows whose delivery is gone a new number, so that they are sent again."""
    for one in lost:
        await connection.execute(
            update(reminders)
            .where(reminders.c.subject_id == one.subject_id, reminders.c.number == one.number)
            .values(number=reminders.c.number + 1, sent_at=None, remind_at=None)
        )


async def unsend_all(connection: AsyncConnection) -> int:
    """The queue was emptied: every row counts as unsent. Return how many had been sent."""
    result = await connection.execute(
        update(reminders)
        .where(reminders.c.due_at.is_not(None), reminders.c.remind_at.is_not(None))
        .values(sent_at=None, remind_at=None)
    )
    return result.rowcount

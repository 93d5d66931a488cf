"""Rows of the outbox that are to be sent: which stages have some, and whose turn it is."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import (
    BigInteger,
    and_,
    bindparam,
    func,
    literal,
    select,
    union,
    update,
)

from drivefeed.catalog.dialect import batches
from drivefeed.catalog.reminders import LANES, free
from drivefeed.catalog.tables import orgs, reminders
from drivefeed.ports import Stage

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from sqlalchemy import BindParameter, ColumnElement, CompoundSelect, RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection


OF_NUMBER = update(reminders).where(
    reminders.c.subject_id == bindparam("of"), reminders.c.number == bindparam("named")
)


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
    turn: int = 0
    """How many of its org's deliveries of the stage are before it."""


def _waiting(
    stage: str | BindParameter[str], lane: int | BindParameter[int]
) -> ColumnElement[bool]:
    """Return the condition that a row is unsent, due after ``after`` until ``until``, and free."""
    return and_(
        reminders.c.stage == stage,
        reminders.c.lane == lane,
        reminders.c.due_at > bindparam("after", type_=BigInteger),
        reminders.c.due_at <= bindparam("until", type_=BigInteger),
        reminders.c.sent_at.is_(None),
        free(bindparam("now", type_=BigInteger)),
    )


def _has_waiting(
    stage: str | BindParameter[str], lane: int | BindParameter[int]
) -> ColumnElement[bool]:
    """Return the condition that an org has such a row.

    It asks for the first by the order of the index. Where most rows of a table wait, Postgres
    answers EXISTS by reading the table from its beginning, which is where what is done already
    lies: of a backlog of a million rows, all of them.
    """
    first = (
        select(reminders.c.due_at)
        .where(_waiting(stage, lane), reminders.c.org_id == orgs.c.id)
        .order_by(reminders.c.due_at)
        .limit(1)
    )
    return first.scalar_subquery().is_not(None)


_WAITING = _waiting(bindparam("of_stage"), bindparam("of_lane"))
_ORGS_WAITING = (
    select(orgs.c.id)
    .where(_has_waiting(bindparam("of_stage"), bindparam("of_lane")))
    .order_by(orgs.c.id)
)
_WAITING_OF_ORG = (
    select(reminders)
    .where(_WAITING, reminders.c.org_id == bindparam("of_org"))
    .order_by(reminders.c.due_at)
    .limit(bindparam("most"))
)


_IN_FLIGHT = (
    select(reminders.c.org_id, func.count().label("sent"))
    .where(reminders.c.stage == bindparam("of_stage"), reminders.c.sent_at.is_not(None))
    .group_by(reminders.c.org_id)
)
_MOST_ROWS = 1_000
"""Rows that one question reads at most, of however many organizations."""
_EVER = -1


async def due(
    connection: AsyncConnection,
    stage: str,
    *,
    now: int,
    horizon_ms: int,
    limit: int,
    after: int = _EVER,
    held: Mapping[int, Collection[str]] | None = None,
) -> list[Reminder]:
    """Return unsent rows due until ``now + horizon_ms``: urgent lanes first, orgs in turn.

    An org whose deliveries are in the queue already has had so many turns: whoever has the
    fewest is next, so that a backlog does not pass by everybody else's single file. Each org's
    rows are read in the order of the index and no further than the limit, so that a backlog of
    hundreds of thousands costs no more than a short one.

    Args:
        after: leave out rows that were due by then.
        held: orgs to be left out, by lane.
    """
    sent = await connection.execute(_IN_FLIGHT, {"of_stage": stage})
    in_flight: dict[str, int] = {row.org_id: row.sent for row in sent}
    found: list[Reminder] = []
    for lane in LANES:
        left = limit - len(found)
        if left <= 0:
            break
        asked: dict[str, Any] = {"of_stage": stage, "of_lane": lane, "now": now}
        asked |= {"after": after, "until": now + horizon_ms}
        waiting = (await connection.execute(_ORGS_WAITING, asked)).scalars().all()
        without = held.get(lane, ()) if held else ()
        served = [org_id for org_id in waiting if org_id not in without]
        most = max(1, min(left, _MOST_ROWS // max(1, len(served))))
        turns: list[Reminder] = []
        for org_id in served:
            rows = await connection.execute(
                _WAITING_OF_ORG, asked | {"of_org": org_id, "most": most}
            )
            turns += [
                reminder_of(row, turn=turn)
                for turn, row in enumerate(rows.mappings(), start=in_flight.get(org_id, 0))
            ]
        turns.sort(key=lambda one: (one.turn, one.due_at))
        for one in turns[:left]:
            in_flight[one.org_id] = one.turn + 1
            found.append(one)
    return found


def reminder_of(row: RowMapping, *, turn: int = 0) -> Reminder:
    """Read a row of ``reminders``."""
    return Reminder(
        subject_id=row["subject_id"],
        org_id=row["org_id"],
        stage=row["stage"],
        number=row["number"],
        due_at=row["due_at"],
        lane=row["lane"],
        payload=json.loads(row["payload"]),
        turn=turn,
    )


async def mark_sent(
    connection: AsyncConnection, sent: Sequence[Reminder], *, now: int, remind_at: int
) -> None:
    """Record that deliveries were made; rows that were written again since stay unsent."""
    free_ = await not_locked(connection, sent)
    rows = [
        {
            "of": one.subject_id,
            "named": one.number,
            "sent_at": now,
            "remind_at": max(remind_at, one.due_at + remind_at - now),
        }
        for one in sent
        if one.subject_id in free_
    ]
    if rows:
        await connection.execute(OF_NUMBER, rows)


async def not_locked(connection: AsyncConnection, rows: Sequence[Reminder]) -> set[str]:
    """Lock rows, and return the ids of those that nobody else has locked just now.

    Whoever has one is about to change it or to release it. What it then needs is found at the
    next look, so that a relay never waits for a row, in whatever order others take theirs.
    """
    found: set[str] = set()
    for batch in batches(one.subject_id for one in rows):
        free_ = await connection.execute(
            select(reminders.c.subject_id)
            .where(reminders.c.subject_id.in_(batch))
            .with_for_update(skip_locked=True)
        )
        found.update(str(key) for key in free_.scalars())
    return found


async def stages_due(connection: AsyncConnection, *, now: int, horizon_ms: int) -> list[str]:
    """Return the stages that have unsent rows due until ``now + horizon_ms``."""
    rows = await connection.execute(
        _probes(), {"now": now, "after": _EVER, "until": now + horizon_ms}
    )
    found = {str(stage) for stage in rows.scalars()}
    return [stage for stage in Stage if stage in found]


@cache
def _probes() -> CompoundSelect[Any]:
    """One statement of small probes, built once: the relay asks every second of an idle day."""
    return union(
        *(
            select(literal(stage.value).label("stage"))
            .select_from(orgs)
            .where(_has_waiting(stage, lane))
            for stage in Stage
            for lane in LANES
        )
    )

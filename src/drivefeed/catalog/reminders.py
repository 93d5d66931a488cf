"""The outbox: one row per subject says which stage is due and when.

A delivery names its row's number; a row that was written again has a higher number, so a kept or
duplicate delivery can neither run twice nor swallow a retry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, and_, bindparam, case, func, or_, select, update

from drivefeed.catalog.reminder_rows import due_row, put_statement
from drivefeed.catalog.tables import heartbeats, reminders

if TYPE_CHECKING:
    from typing import Unpack

    from sqlalchemy import BindParameter, ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.reminder_rows import Reminder

    Instant = int | BindParameter[int]

LANE_FRESH = 0
LANE_BACKFILL = 1
LANES = (LANE_FRESH, LANE_BACKFILL)
"""All lanes, the most urgent first."""
_SUSPECT_WAITS_MS = {2: 1_000, 3: 3_000, 4: 8_000}
"""By starts that came to nothing: how long a row waits when its owner died again."""


# A statement takes longer to put together than to run; these run for every step of every file.
_SUBJECT: BindParameter[str] = bindparam("of")
_OWNER: BindParameter[str] = bindparam("held_by")
REST = (
    update(reminders)
    .where(reminders.c.subject_id == _SUBJECT)
    .values(due_at=None, sent_at=None, remind_at=None, starts=0)
)
_POSTPONE = (
    update(reminders)
    .where(reminders.c.subject_id == _SUBJECT)
    .values(
        number=reminders.c.number + 1,
        due_at=bindparam("later"),
        sent_at=None,
        remind_at=None,
        starts=0,
    )
)
_STAGE = (
    select(reminders.c.stage)
    .where(reminders.c.subject_id == _SUBJECT, reminders.c.due_at.is_not(None))
    .with_for_update()
)
_RELEASE = (
    update(reminders)
    .where(reminders.c.subject_id == _SUBJECT, reminders.c.owner == _OWNER)
    .values(owner=None, busy_until=None)
)
_GETS_ON = (
    update(reminders)
    .where(reminders.c.subject_id == _SUBJECT, reminders.c.starts > 1)
    .values(starts=1)
)
_NUMBER = select(reminders.c.number).where(reminders.c.subject_id == _SUBJECT).with_for_update()


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to work on a subject until ``busy_until``, unless renewed.

    Attributes:
        lane: how urgent the row is.
    """

    subject_id: str
    stage: str
    number: int
    owner: str
    starts: int
    lane: int = LANE_BACKFILL


async def put(
    connection: AsyncConnection, *, lane: int = LANE_BACKFILL, **due: Unpack[Reminder]
) -> None:
    """Write that ``stage`` is due; every earlier delivery of the subject becomes void."""
    await connection.execute(put_statement(connection.dialect.name), due_row(lane=lane, **due))


async def postpone(connection: AsyncConnection, subject_id: str, *, due_at: int) -> None:
    """Make the same stage due at another time, under a new number."""
    await connection.execute(_POSTPONE, {"of": subject_id, "later": due_at})


async def rest(connection: AsyncConnection, subject_id: str) -> None:
    """Nothing is due. The row stays for its number, which must never be used again."""
    await connection.execute(REST, {"of": subject_id})


async def stage_of(connection: AsyncConnection, subject_id: str) -> str | None:
    """Return the stage that is due for a subject, or None; the row stays so until the commit."""
    row = await connection.execute(_STAGE, {"of": subject_id})
    return row.scalar_one_or_none()


def free(now: Instant) -> ColumnElement[bool]:
    """Return the condition that nobody works on a row."""
    return or_(reminders.c.owner.is_(None), reminders.c.busy_until < now)


_CLAIM = (
    update(reminders)
    .where(
        reminders.c.subject_id == _SUBJECT,
        reminders.c.number == bindparam("named"),
        free(bindparam("now", type_=BigInteger)),
    )
    .values(
        owner=bindparam("taken_by"),
        busy_until=bindparam("taken_until"),
        starts=reminders.c.starts + 1,
    )
    .returning(reminders.c.stage, reminders.c.starts, reminders.c.lane)
)


async def claim(
    connection: AsyncConnection,
    *,
    subject_id: str,
    number: int,
    owner: str,
    now: int,
    busy_ms: int,
) -> Claim | None:
    """Take a row that a delivery named; None if it was written again or somebody has it.

    A delivery that was retried on the board may claim a row that waits for a person, so a row
    with nothing due can be claimed as well.
    """
    wanted = {"of": subject_id, "named": number, "now": now}
    taken = {"taken_by": owner, "taken_until": now + busy_ms}
    row = (await connection.execute(_CLAIM, wanted | taken)).mappings().one_or_none()
    if row is None:
        return None
    return Claim(subject_id, row["stage"], number, owner, row["starts"], row["lane"])


async def renew(connection: AsyncConnection, claim_: Claim, *, busy_until: int) -> bool:
    """Extend a claim; False if it was lost."""
    result = await connection.execute(
        update(reminders).where(_held(claim_)).values(busy_until=busy_until)
    )
    return result.rowcount == 1


async def note_progress(connection: AsyncConnection, subject_id: str) -> None:
    """Forget the deaths of earlier runs: what gets on does not end its worker."""
    await connection.execute(_GETS_ON, {"of": subject_id})


async def is_held(connection: AsyncConnection, claim_: Claim) -> bool:
    """Tell whether a claim was neither released nor lost."""
    row = await connection.execute(select(reminders.c.subject_id).where(_held(claim_)))
    return row.scalar_one_or_none() is not None


async def release(connection: AsyncConnection, claim_: Claim) -> None:
    """Let a subject go; whatever is due for it may be sent now."""
    await connection.execute(_RELEASE, {"of": claim_.subject_id, "held_by": claim_.owner})


def _held(claim_: Claim) -> ColumnElement[bool]:
    return and_(reminders.c.subject_id == claim_.subject_id, reminders.c.owner == claim_.owner)


def _owner_is_dead(dead_before: Instant, own: str | BindParameter[str]) -> ColumnElement[bool]:
    alive = select(heartbeats.c.owner).where(heartbeats.c.seen_at >= dead_before)
    return and_(
        reminders.c.owner.is_not(None), reminders.c.owner != own, reminders.c.owner.not_in(alive)
    )


_OF_DEAD_OWNERS = (
    select(reminders.c.subject_id)
    .where(_owner_is_dead(bindparam("dead_before", type_=BigInteger), bindparam("own")))
    .limit(1)
)


async def has_rows_of_dead_owners(
    connection: AsyncConnection, *, dead_before: int, own: str
) -> bool:
    """Tell whether somebody whose heartbeat stopped still owns a row."""
    asked = {"dead_before": dead_before, "own": own}
    row = await connection.execute(_OF_DEAD_OWNERS, asked)
    return row.scalar_one_or_none() is not None


async def free_rows_of_dead_owners(
    connection: AsyncConnection, *, now: int, dead_before: int, own: str = ""
) -> int:
    """Make rows due again whose owner's heartbeat stopped; return how many.

    What was interrupted once goes to the head of the line: what was begun is finished before
    more is begun. What was under way at several deaths may be their cause, or have had bad luck:
    it waits behind the others and longer each time, so that they get on, and so that a process
    which is killed again and again does not count against the same innocent file each time.
    """
    result = await connection.execute(
        update(reminders)
        .where(_owner_is_dead(dead_before, own))
        .values(
            owner=None,
            busy_until=None,
            number=reminders.c.number + 1,
            sent_at=None,
            remind_at=None,
            lane=case((reminders.c.starts <= 1, LANE_FRESH), else_=LANE_BACKFILL),
            due_at=case(
                (reminders.c.starts <= 1, func.coalesce(reminders.c.due_at, now)),
                *(
                    (reminders.c.starts == starts, now + wait)
                    for starts, wait in _SUSPECT_WAITS_MS.items()
                ),
                else_=now + max(_SUSPECT_WAITS_MS.values()),
            ),
        )
    )
    return result.rowcount


async def number_of(connection: AsyncConnection, subject_id: str) -> int | None:
    """Return a subject's current number, or None; the row stays so until the commit."""
    row = await connection.execute(_NUMBER, {"of": subject_id})
    return row.scalar_one_or_none()


async def hand_back(connection: AsyncConnection, claim_: Claim, *, now: int) -> None:
    """Let a subject go in the middle of its stage: the same stage is due again at once."""
    await connection.execute(
        update(reminders)
        .where(_held(claim_))
        .values(
            owner=None,
            busy_until=None,
            number=reminders.c.number + 1,
            sent_at=None,
            remind_at=None,
            due_at=func.coalesce(reminders.c.due_at, now),
            starts=reminders.c.starts - 1,
        )
    )


async def conclude(connection: AsyncConnection, claim_: Claim, *, due_at: int | None) -> None:
    """End a run: the stage is due again at ``due_at``, or nothing is; the subject is let go.

    Where the row was written again during the run, what that wrote stays due.
    """
    if await number_of(connection, claim_.subject_id) == claim_.number:
        if due_at is None:
            await rest(connection, claim_.subject_id)
        else:
            await postpone(connection, claim_.subject_id, due_at=due_at)
    await release(connection, claim_)

"""Deliveries of notices: claimed as one message, sent at least once, given up after a day.

A message gets its key when it is claimed, in a transaction of its own before anything is sent. A
process that dies after sending and before saying so leaves the key behind; whoever claims it then
sends the same message under the same key, by which receivers tell the copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, func, not_, or_, select, update

from drivefeed.catalog.access_tables import notice_deliveries, notices
from drivefeed.catalog.tables import orgs
from drivefeed.domain.notices import Happening, Message, Severity, Told

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import ColumnElement, RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog

_D = notice_deliveries.c
_URGENT = and_(notices.c.severity == Severity.URGENT, _D.happening == Happening.OPENED)
_JOINED = notice_deliveries.join(notices, notices.c.id == _D.notice_id)


@dataclass(frozen=True, slots=True)
class Claimed:
    """A message that this process may send until its time is over.

    Attributes:
        attempts: how often it was tried before.
        made_at: when the oldest of its deliveries was made.
    """

    channel: str
    message: Message
    attempts: int
    made_at: int


async def claim(catalog: Catalog, channel: str, *, digest_ms: int, busy_ms: int) -> Claimed | None:
    """Claim the next message of a channel, or None where nothing is due.

    A message that was claimed before and not sent comes first, as it was. Then what is urgent;
    then all the rest together, once ``digest_ms`` after the last such message and only when none
    of them still waits to be sent.

    Args:
        busy_ms: for how long nobody else may claim it.
    """
    now = catalog.clock.now()
    async with catalog.read() as connection:
        due = await connection.execute(
            select(_D.channel).where(_D.channel == channel, _D.due_at <= now).limit(1)
        )
        if due.scalar_one_or_none() is None:
            return None
    async with catalog.write("notice.claim") as connection:
        key = await _begun(connection, channel, now=now)
        if key is None:
            key = await _begin(catalog, connection, channel, digest_ms=digest_ms)
        if key is None:
            return None
        taken = await connection.execute(
            update(notice_deliveries)
            .where(_of(channel, key), or_(_D.busy_until.is_(None), _D.busy_until <= now))
            .values(busy_until=now + busy_ms)
        )
        if not taken.rowcount:
            return None
        rows = await connection.execute(
            select(notices, notice_deliveries, orgs.c.name.label("org"))
            .select_from(_JOINED.outerjoin(orgs, orgs.c.id == notices.c.org_id))
            .where(_of(channel, key))
            .order_by(_D.happening, notices.c.first_at, notices.c.id)
        )
        found = rows.mappings().all()
        message = Message(key=key, at=now, told=tuple(_told(row) for row in found))
        return Claimed(
            channel=channel,
            message=message,
            attempts=max(row["attempts"] for row in found),
            made_at=min(row["made_at"] for row in found),
        )


def _of(channel: str, key: str) -> ColumnElement[bool]:
    """Rows of a message that are still to be sent."""
    return and_(_D.channel == channel, _D.message_key == key, _D.due_at.is_not(None))


async def _begun(connection: AsyncConnection, channel: str, *, now: int) -> str | None:
    """Return the key of a message that is due again, or whose sender is gone."""
    found = await connection.execute(
        select(_D.message_key)
        .where(
            _D.channel == channel,
            _D.message_key.is_not(None),
            _D.due_at <= now,
            or_(_D.busy_until.is_(None), _D.busy_until <= now),
        )
        .order_by(_D.due_at, _D.message_key)
        .limit(1)
    )
    return found.scalar_one_or_none()


async def _begin(
    catalog: Catalog, connection: AsyncConnection, channel: str, *, digest_ms: int
) -> str | None:
    """Put what is due into a new message, and return its key."""
    now = catalog.clock.now()
    fresh = and_(_D.channel == channel, _D.message_key.is_(None), _D.due_at <= now)
    for which in (_URGENT, not_(_URGENT)):
        found = await connection.execute(
            select(_D.notice_id, _D.happening).select_from(_JOINED).where(fresh, which)
        )
        rows = found.all()
        if not rows:
            continue
        if which is not _URGENT and await _is_too_soon(connection, channel, now - digest_ms):
            return None
        alone = rows[0] if len(rows) == 1 else None
        key = f"{alone[0]}.{alone[1]}" if alone else f"{catalog.ids.new()}.digest"
        for notice_id, happening in rows:
            await connection.execute(
                update(notice_deliveries)
                .where(fresh, _D.notice_id == notice_id, _D.happening == happening)
                .values(message_key=key)
            )
        return key
    return None


async def _is_too_soon(connection: AsyncConnection, channel: str, before: int) -> bool:
    """Whether a message that is not urgent was sent after ``before``, or still waits."""
    found = await connection.execute(
        select(func.count())
        .select_from(_JOINED)
        .where(
            _D.channel == channel,
            _D.message_key.is_not(None),
            or_(_D.sent_at > before, _D.due_at.is_not(None)),
            not_(_URGENT),
        )
    )
    return bool(found.scalar_one())


def _told(row: RowMapping) -> Told:
    return Told(
        notice_id=row["id"],
        happening=Happening(row["happening"]),
        kind=row["kind"],
        severity=Severity(row["severity"]),
        org=row["org"] or "",
        subject=row["subject"],
        words=row["words"],
        remedy=row["remedy"],
        command=row["command"],
        reason=row["reason"],
        count=row["count"],
        first_at=row["first_at"],
        last_at=row["last_at"],
        over_at=row["over_at"],
    )


async def mark_delivered(catalog: Catalog, claimed: Claimed, *, answer: str) -> None:
    """Record that a message was taken, with what the server answered."""
    async with catalog.write("notice.delivered") as connection:
        await connection.execute(
            update(notice_deliveries)
            .where(_of(claimed.channel, claimed.message.key))
            .values(
                sent_at=catalog.clock.now(),
                attempts=_D.attempts + 1,
                due_at=None,
                busy_until=None,
                detail=answer,
            )
        )


async def mark_failed(
    catalog: Catalog, claimed: Claimed, *, words: str, again_at: int | None
) -> None:
    """Record that a message was not taken, and when to try again; None to give up."""
    async with catalog.write("notice.failed") as connection:
        await connection.execute(
            update(notice_deliveries)
            .where(_of(claimed.channel, claimed.message.key))
            .values(
                attempts=_D.attempts + 1,
                due_at=again_at,
                busy_until=None,
                gave_up_at=catalog.clock.now() if again_at is None else None,
                detail=words,
            )
        )


async def drop_unknown(catalog: Catalog, channels: Collection[str]) -> int:
    """Give up deliveries of channels that the settings have no more; return how many."""
    async with catalog.read() as connection:
        found = await connection.execute(
            select(func.count()).where(_D.due_at.is_not(None), _D.channel.not_in(channels))
        )
        if not found.scalar_one():
            return 0
    async with catalog.write("notice.drop") as connection:
        dropped = await connection.execute(
            update(notice_deliveries)
            .where(_D.due_at.is_not(None), _D.channel.not_in(channels))
            .values(
                due_at=None,
                busy_until=None,
                gave_up_at=catalog.clock.now(),
                detail="The settings have no channel of this name any more.",
            )
        )
    return dropped.rowcount

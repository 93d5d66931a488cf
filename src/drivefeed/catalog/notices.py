"""Notices as rows: each trouble is opened once, refreshed while it lasts, and closed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sqlalchemy import case, select, update
from sqlalchemy import insert as plain_insert

from drivefeed.catalog.access_tables import notice_deliveries, notices
from drivefeed.catalog.dialect import insert_once
from drivefeed.catalog.tables import orgs
from drivefeed.domain.notices import Happening

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.notices import NoticeKind, Subscription, Trouble


@dataclass(slots=True)
class Change:
    """What one look changed: ids of notices that were opened, refreshed and closed."""

    opened: list[str] = field(default_factory=list)
    refreshed: list[str] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)


async def reconcile(
    catalog: Catalog,
    troubles: Collection[Trouble],
    subscriptions: Sequence[Subscription],
    *,
    keep: Collection[NoticeKind] = (),
) -> Change:
    """Make the open notices those of ``troubles``; one transaction.

    New ones are opened, known ones get the words of now, a later ``last_at`` and a higher
    ``count``; those whose cause is gone are closed. A trouble that comes back is a new row.
    Deliveries are made for each channel that wants to be told, once.

    Args:
        troubles: all of them; what is not among them is over.
        subscriptions: the channels of the settings.
        keep: kinds that are not closed, because it is not known yet whether they are over.
    """
    now = catalog.clock.now()
    change = Change()
    is_open = select(notices).where(notices.c.over_at.is_(None))
    if not troubles:
        async with catalog.read() as connection:
            if (await connection.execute(is_open.limit(1))).first() is None:
                return change
    async with catalog.write("notice.reconcile") as connection:
        rows = await connection.execute(is_open)
        known = {row["dedupe_key"]: row for row in rows.mappings()}
        for one in troubles:
            notice_id = await _open_or_refresh(catalog, connection, one, known, change, now=now)
            for subscription in subscriptions:
                if subscription.wants(one):
                    await _tell(connection, notice_id, subscription.channel, now=now)
        present = {one.key for one in troubles}
        families = {one.family for one in troubles if one.family}
        for key, row in known.items():
            if key not in present and row["kind"] not in keep:
                is_replaced = (row["kind"], row["subject_id"]) in families
                await _close(connection, row, now=now, is_replaced=is_replaced)
                change.closed.append(str(row["id"]))
    return change


async def _open_or_refresh(
    catalog: Catalog,
    connection: AsyncConnection,
    one: Trouble,
    known: dict[str, RowMapping],
    change: Change,
    *,
    now: int,
) -> str:
    says = {
        "severity": one.severity,
        "subject": one.subject,
        "words": one.words,
        "remedy": one.remedy,
        "command": one.command,
        "last_at": now,
    }
    row = known.get(one.key)
    if row is not None:
        await connection.execute(
            update(notices)
            .where(notices.c.id == row["id"])
            .values(count=notices.c.count + 1, **says)
        )
        change.refreshed.append(str(row["id"]))
        return str(row["id"])
    notice_id = catalog.ids.new()
    await connection.execute(
        plain_insert(notices).values(
            id=notice_id,
            org_id=one.org_id,
            dedupe_key=one.key,
            kind=one.kind,
            subject_id=one.subject_id,
            reason=one.reason,
            first_at=now,
            **says,
        )
    )
    change.opened.append(notice_id)
    return notice_id


async def _tell(connection: AsyncConnection, notice_id: str, channel: str, *, now: int) -> None:
    """Make a delivery unless there is one; channels that were added later catch up so."""
    await insert_once(
        connection,
        notice_deliveries,
        {
            "notice_id": notice_id,
            "channel": channel,
            "happening": Happening.OPENED,
            "due_at": now,
            "made_at": now,
        },
    )


async def _close(
    connection: AsyncConnection, row: RowMapping, *, now: int, is_replaced: bool
) -> None:
    """Close a notice, and tell those who heard of it; nobody is told what was never told.

    Args:
        is_replaced: the next step of the same warning is open, so it is not over for a person.
    """
    await connection.execute(update(notices).where(notices.c.id == row["id"]).values(over_at=now))
    is_delivery = (notice_deliveries.c.notice_id == row["id"]) & (
        notice_deliveries.c.happening == Happening.OPENED
    )
    await connection.execute(
        update(notice_deliveries)
        .where(is_delivery, notice_deliveries.c.message_key.is_(None))
        .values(due_at=None, detail="It was over before it was told.")
    )
    if is_replaced:
        return
    told = await connection.execute(
        select(notice_deliveries.c.channel).where(
            is_delivery,
            notice_deliveries.c.message_key.is_not(None),
            notice_deliveries.c.gave_up_at.is_(None),
        )
    )
    for channel in told.scalars().all():
        await insert_once(
            connection,
            notice_deliveries,
            {
                "notice_id": row["id"],
                "channel": channel,
                "happening": Happening.OVER,
                "due_at": now,
                "made_at": now,
            },
        )


async def list_notices(catalog: Catalog, *, past: int = 20) -> list[dict[str, Any]]:
    """Return open notices, the newest first, then at most ``past`` closed ones, with deliveries.

    Each is a row of ``notices`` with ``org`` (its name, or None) and ``deliveries`` (rows).
    """
    is_open = notices.c.over_at.is_(None)
    order = (case((is_open, 0), else_=1), notices.c.first_at.desc(), notices.c.id)
    wanted = select(notices, orgs.c.name.label("org")).outerjoin(
        orgs, orgs.c.id == notices.c.org_id
    )
    async with catalog.read() as connection:
        rows = await connection.execute(wanted.where(is_open).order_by(*order))
        found = [dict(row) for row in rows.mappings()]
        rows = await connection.execute(wanted.where(~is_open).order_by(*order).limit(past))
        found += [dict(row) for row in rows.mappings()]
        sent = await connection.execute(
            select(notice_deliveries)
            .where(notice_deliveries.c.notice_id.in_([one["id"] for one in found]))
            .order_by(notice_deliveries.c.made_at, notice_deliveries.c.channel)
        )
        deliveries = [dict(row) for row in sent.mappings()]
    for one in found:
        one["deliveries"] = [each for each in deliveries if each["notice_id"] == one["id"]]
    return found

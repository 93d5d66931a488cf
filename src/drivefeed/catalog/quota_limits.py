"""Page limits: set by people, and counted anew when a period begins."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from sqlalchemy import BigInteger, bindparam, func, select, update

from drivefeed.catalog.audit_log import record
from drivefeed.catalog.engine import now_of
from drivefeed.catalog.ledger import OURS
from drivefeed.catalog.quota import balance_of, pages_are_free
from drivefeed.catalog.tables import orgs
from drivefeed.catalog.usage_tables import ledger
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.periods import Period, begin_of, end_of
from drivefeed.domain.quiet import zone_of
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog


@dataclass(frozen=True, slots=True)
class Limit:
    """How many pages an org may use.

    Attributes:
        pages: in each period; None for as many as it likes.
        zone: the time zone in which the period is a calendar month or day.
    """

    pages: int | None = None
    period: Period = Period.TOTAL
    zone: str = "UTC"


async def set_limit(catalog: Catalog, org_id: str, limit: Limit, *, actor: str) -> None:
    """Give an org another page limit; what waits goes on at once where there is room for it.

    Pages that were charged in the present period already count.

    Raises:
        NeedsAttention: the limit is below 0, or there is no such time zone.
    """
    if limit.pages is not None and limit.pages < 0:
        raise NeedsAttention("A page limit is 0 or more.", reason=Reason.MISCONFIGURED)
    if zone_of(limit.zone) is None:
        raise NeedsAttention(
            f"There is no time zone '{limit.zone}'. Name one of the tz database, for example "
            "Europe/Berlin.",
            reason=Reason.MISCONFIGURED,
        )
    async with catalog.write("quota.limit") as connection:
        await balance_of(connection, org_id, locked=True)
        before = await _limit_of(connection, org_id)
        await connection.execute(
            update(orgs)
            .where(orgs.c.id == org_id)
            .values(page_limit=limit.pages, limit_period=limit.period, limit_zone=limit.zone)
        )
        await _begin_period(connection, org_id, limit)
        if before != limit:
            await record(
                connection,
                org_id=org_id,
                actor=actor,
                action="usage.limited",
                subject_id=org_id,
                before=asdict(before),
                after=asdict(limit),
            )
        pages_are_free(connection, org_id)


# Asked every other second of an idle day, so it is put together once.
_DUE = select(orgs.c.id).where(orgs.c.quota_due_at <= bindparam("now", type_=BigInteger))


async def turn_due(catalog: Catalog) -> int:
    """Begin the periods that are due, and let lines move on that were too long to move at once.

    Returns:
        For how many organizations something was due.
    """
    asked = {"now": catalog.clock.now()}
    async with catalog.read() as connection:
        found = [str(one) for one in (await connection.execute(_DUE, asked)).scalars()]
    for org_id in found:
        async with catalog.write("period") as connection:
            await balance_of(connection, org_id, locked=True)
            await _begin_period(connection, org_id, await _limit_of(connection, org_id))
            pages_are_free(connection, org_id)
    return len(found)


async def _limit_of(connection: AsyncConnection, org_id: str) -> Limit:
    row = (
        await connection.execute(
            select(orgs.c.page_limit, orgs.c.limit_period, orgs.c.limit_zone).where(
                orgs.c.id == org_id
            )
        )
    ).one()
    return Limit(row.page_limit, Period(row.limit_period), row.limit_zone)


async def _begin_period(connection: AsyncConnection, org_id: str, limit: Limit) -> None:
    """Write in which period the org is, and what it used in it; its row is locked."""
    now = now_of(connection)
    begin = begin_of(limit.period, limit.zone, now)
    used = await used_since(connection, org_id, begin)
    await connection.execute(
        update(orgs)
        .where(orgs.c.id == org_id)
        .values(
            period_start=begin,
            period_used=used,
            quota_due_at=end_of(limit.period, limit.zone, now),
        )
    )


async def used_since(connection: AsyncConnection, org_id: str, since: int) -> int:
    """Return the sum of the ledger from an instant on, without copies of a backend's books."""
    total = await connection.scalar(
        select(func.sum(ledger.c.pages)).where(
            ledger.c.org_id == org_id, ledger.c.at >= since, ledger.c.usage_owner == OURS
        )
    )
    return int(total or 0)

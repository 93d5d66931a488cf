"""Quota: pages are held for an import, adjusted once they are counted, and released.

What an organization uses and holds is on its row. More is held by one conditional UPDATE of that
row, so that two imports never both get the last pages. Locks are taken in one order: the
organization's row, then reservations, then imports that go on.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import BigInteger, bindparam, or_, select, update

from drivefeed.catalog.dialect import among, as_many, upsert
from drivefeed.catalog.endings import before_commit
from drivefeed.catalog.engine import now_of
from drivefeed.catalog.tables import orgs
from drivefeed.catalog.usage_tables import ledger, reservations
from drivefeed.domain.converge import may_hold_pages
from drivefeed.domain.metering import Balance, adjust, hold

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import BindParameter, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.domain.model import Import

HELD: Final = "held"
SETTLED: Final = "settled"
RELEASED: Final = "released"

_ORG: BindParameter[str] = bindparam("of")
_MORE: BindParameter[int] = bindparam("more", type_=BigInteger)
_BALANCE = select(orgs.c.page_limit, orgs.c.period_used, orgs.c.pages_held).where(orgs.c.id == _ORG)
# An UPDATE takes the same lock, which leaves those alone who only refer to the row.
_LOCKED_BALANCE = _BALANCE.with_for_update(key_share=True)
_HOLD_MORE = (
    update(orgs)
    .where(
        orgs.c.id == _ORG,
        or_(
            _MORE <= 0,
            orgs.c.page_limit.is_(None),
            orgs.c.period_used + orgs.c.pages_held + _MORE <= orgs.c.page_limit,
        ),
    )
    .values(pages_held=orgs.c.pages_held + _MORE)
)
_RESERVATION = select(reservations).where(
    reservations.c.import_id == bindparam("of_import"), reservations.c.round == bindparam("round")
)
_HELD_BY = select(reservations.c.org_id).where(
    reservations.c.import_id == bindparam("of_import"), reservations.c.state == HELD
)
_END = (
    update(reservations)
    .where(reservations.c.import_id == bindparam("of_import"), reservations.c.state == HELD)
    .values(state=bindparam("ends_as"), ended_at=bindparam("now", type_=BigInteger))
    .returning(reservations.c.pages)
)


@dataclass(frozen=True, slots=True)
class Need:
    """The pages that an import needs.

    Attributes:
        pages: its estimate, or its counted pages; at least 1.
        counted: whether they were counted, so that it holds all of them or waits.
    """

    pages: int
    counted: bool = False


async def balance_of(connection: AsyncConnection, org_id: str, *, locked: bool = False) -> Balance:
    """Return how the pages of an org stand.

    Args:
        locked: whether nobody may change that before the end of the transaction.
    """
    statement = _LOCKED_BALANCE if locked else _BALANCE
    row = (await connection.execute(statement, {"of": org_id})).one()
    return Balance(row.page_limit, row.period_used, row.pages_held)


async def is_charged(connection: AsyncConnection, one: Import) -> bool:
    """Tell whether a version was charged already, under its id or for the same bytes."""
    same = ledger.c.import_id == one.import_id
    if one.sha256 is not None:
        same = or_(
            same,
            (ledger.c.document_id == one.document_id) & (ledger.c.sha256 == one.sha256),
        )
    found = await connection.execute(select(ledger.c.id).where(same).limit(1))
    return found.first() is not None


async def hold_pages(connection: AsyncConnection, one: Import, need: Need) -> bool:
    """Hold the pages that a round of an import needs, as far as it does not hold them yet.

    An estimate takes what is free of it. Counted pages are held all or none: where they do not
    fit, what was held is released. A version that was charged already holds nothing.

    Returns:
        Whether it may go on; otherwise it has to wait in line.
    """
    balance = await balance_of(connection, one.org_id)
    if balance.limit is None or await is_charged(connection, one):
        await release_pages(connection, one)
        return True
    balance = await balance_of(connection, one.org_id, locked=True)
    key = {"of_import": one.import_id, "round": one.round}
    row = (await connection.execute(_RESERVATION, key)).one_or_none()
    if row is not None and row.counted and not need.counted:
        need = Need(row.wanted, counted=True)
    before = row.pages if row is not None and row.state == HELD else 0
    if before and not need.counted:
        return True
    granted = (
        adjust(balance, before, need.pages)
        if need.counted
        else hold(balance, need.pages, exact=False)
    )
    changed = await connection.execute(_HOLD_MORE, {"of": one.org_id, "more": granted - before})
    if changed.rowcount != 1:  # pragma: no cover - the row is locked, so the sum still holds
        granted = 0
        await connection.execute(_HOLD_MORE, {"of": one.org_id, "more": -before})
    now = now_of(connection)
    await upsert(
        connection,
        reservations,
        [
            {
                "import_id": one.import_id,
                "round": one.round,
                "org_id": one.org_id,
                "state": HELD if granted else RELEASED,
                "pages": granted,
                "wanted": need.pages,
                "counted": need.counted,
                "at": now,
                "ended_at": None if granted else now,
            }
        ],
    )
    if granted < before:
        pages_are_free(connection, one.org_id)
    return granted > 0


async def release_pages(connection: AsyncConnection, one: Import) -> int:
    """Release what an import holds, whatever the round; return how many pages that were."""
    return await _end(connection, one, RELEASED)


async def release_unless_needed(connection: AsyncConnection, one: Import) -> None:
    """Release what an import holds that has ended, or waits without being under way."""
    if not may_hold_pages(one):
        await release_pages(connection, one)


async def release_all_unless_needed(connection: AsyncConnection, imports: Sequence[Import]) -> None:
    """Release what those of many imports hold that need it no more; most hold nothing."""
    unneeded = {one.import_id: one for one in imports if not may_hold_pages(one)}
    if not unneeded:
        return
    name = connection.dialect.name
    holding = await connection.execute(_holding(name), {"ids": as_many(name, unneeded)})
    for key in holding.scalars().all():
        await release_pages(connection, unneeded[key])


@cache
def _holding(dialect: str) -> Select[Any]:
    return (
        select(reservations.c.import_id)
        .where(among(dialect, reservations.c.import_id, "ids"), reservations.c.state == HELD)
        .distinct()
    )


async def settle_pages(connection: AsyncConnection, one: Import) -> int:
    """End the reservation of an import that was charged; return how many pages it held."""
    return await _end(connection, one, SETTLED)


async def _end(connection: AsyncConnection, one: Import, ends_as: str) -> int:
    holding = await connection.execute(_HELD_BY, {"of_import": one.import_id})
    if holding.first() is None:
        return 0
    await balance_of(connection, one.org_id, locked=True)
    ended = await connection.execute(
        _END, {"of_import": one.import_id, "ends_as": ends_as, "now": now_of(connection)}
    )
    pages = sum(int(one) for one in ended.scalars())
    await connection.execute(_HOLD_MORE, {"of": one.org_id, "more": -pages})
    pages_are_free(connection, one.org_id)
    return pages


def pages_are_free(connection: AsyncConnection, org_id: str) -> None:
    """Have the line of an org move at the end of this transaction, and within it."""
    # The line converges documents, whose writing releases pages in turn.
    from drivefeed.catalog.quota_line import move_line

    async def finish(connection: AsyncConnection) -> None:
        await move_line(connection, org_id)

    before_commit(connection, f"line of {org_id}", finish)

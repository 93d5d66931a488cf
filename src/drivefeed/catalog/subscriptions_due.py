"""What there is to ask Microsoft for about subscriptions, found by one query over all drives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import BigInteger, bindparam, func, or_, select

from drivefeed.catalog.subscription_tables import subscriptions
from drivefeed.catalog.subscriptions import FLOWS, Watched, subscription_of
from drivefeed.catalog.tables import drives
from drivefeed.domain.subscription import Subscription, SubscriptionState

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Select

    from drivefeed.catalog.engine import Catalog

_MOST: Final = 25
"""At once; each takes Microsoft up to some seconds, and a lease is waiting."""

_NOW = bindparam("now", type_=BigInteger)
_SILENCE = bindparam("silence_ms", type_=BigInteger)
_MAY_ASK = or_(subscriptions.c.retry_at.is_(None), subscriptions.c.retry_at <= _NOW)
_IS_LIVE = subscriptions.c.state == SubscriptionState.LIVE.value
_HEARD_AT = func.coalesce(drives.c.told_at, 0)
# The same as ``is_due`` and ``is_silent`` of the domain, which a test holds against each other.
_WANTS_WORK = or_(
    subscriptions.c.subscription_id.is_(None),
    _MAY_ASK
    & or_(
        ~_IS_LIVE,
        subscriptions.c.wants_renewal,
        subscriptions.c.expires_at.is_(None),
        subscriptions.c.asked_at + subscriptions.c.expires_at <= 2 * _NOW,
    ),
    subscriptions.c.account_id != drives.c.account_id,
    _IS_LIVE
    & (drives.c.changed_at + _SILENCE <= _NOW)
    & (drives.c.changed_at > subscriptions.c.asked_at + _SILENCE)
    & (drives.c.changed_at > _HEARD_AT + _SILENCE),
)
_EACH = select(
    *subscriptions.c,
    drives.c.id.label("key"),
    drives.c.name,
    drives.c.account_id.label("reads"),
    drives.c.remote_id.label("drive_remote_id"),
    drives.c.told_at,
    drives.c.changed_at,
    FLOWS.label("flows"),
).outerjoin_from(drives, subscriptions, subscriptions.c.drive_id == drives.c.id)


def _due(*, wants: bool) -> Select[Any]:
    """Return what asks for everything there is to do, put together once for every tick."""
    to_end = subscriptions.c.subscription_id.is_not(None) & _MAY_ASK
    where: ColumnElement[bool] = (FLOWS & _WANTS_WORK) | (~FLOWS & to_end) if wants else to_end
    return _EACH.where(where).order_by(drives.c.id).limit(_MOST)


_DUE = {wants: _due(wants=wants) for wants in (False, True)}


@dataclass(frozen=True, slots=True)
class Due:
    """What there is to do at Microsoft now.

    Attributes:
        to_end: subscriptions that nobody wants any more.
        to_ask: drives whose subscription is to be asked for, prolonged or replaced.
    """

    to_end: tuple[Subscription, ...]
    to_ask: tuple[Watched, ...]


async def due_subscriptions(catalog: Catalog, *, wants: bool, silence_ms: int) -> Due:
    """Return what there is to do now, some of it where it is much; one query for all drives.

    Args:
        wants: whether we are told at all; where not, every subscription is to be ended.
        silence_ms: a change that was not told of for so long shows that nobody tells us.
    """
    asked = {"now": catalog.clock.now()} | ({"silence_ms": silence_ms} if wants else {})
    async with catalog.read() as connection:
        found = list((await connection.execute(_DUE[wants], asked)).mappings())
    return Due(
        to_end=tuple(subscription_of(row) for row in found if not (wants and row["flows"])),
        to_ask=tuple(
            Watched(
                drive_id=row["key"],
                name=row["name"],
                account_id=row["reads"],
                remote_id=row["drive_remote_id"],
                told_at=row["told_at"],
                changed_at=row["changed_at"],
                subscription=None if row["subscription_id"] is None else subscription_of(row),
            )
            for row in found
            if wants and row["flows"]
        ),
    )

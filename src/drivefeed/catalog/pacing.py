"""How soon a drive is asked again, from what the catalog knows of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from drivefeed.catalog.subscription_tables import subscriptions
from drivefeed.catalog.tables import drives
from drivefeed.domain.subscription import SubscriptionState

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.pace import Pace


async def pace_in(connection: AsyncConnection, drive: Drive, pace: Pace, *, now: int) -> int:
    """Return the milliseconds until a drive's next round, within a transaction.

    Args:
        now: when the round ended.
    """
    is_told = select(subscriptions.c.drive_id).where(
        subscriptions.c.drive_id == drive.drive_id,
        subscriptions.c.state == SubscriptionState.LIVE.value,
        subscriptions.c.expires_at > now,
    )
    beside = select(func.count()).where(drives.c.account_id == drive.account_id)
    return pace.between_looks(
        drive.interval_ms,
        quiet_ms=None if drive.changed_at is None else max(now - drive.changed_at, 0),
        is_told=(await connection.execute(is_told)).first() is not None,
        drives=(await connection.execute(beside)).scalar_one(),
    )

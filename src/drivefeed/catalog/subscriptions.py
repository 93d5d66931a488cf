"""Subscriptions as rows, and the words about changes that come of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, exists, select, update

from drivefeed.catalog.dialect import batches, upsert
from drivefeed.catalog.subscription_tables import subscriptions
from drivefeed.catalog.tables import connections, drives
from drivefeed.domain.subscription import Subscription, SubscriptionState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from sqlalchemy import RowMapping

    from drivefeed.catalog.engine import Catalog

_LONGEST_DETAIL = 500
FLOWS = exists().where(connections.c.drive_id == drives.c.id, connections.c.paused.is_(False))
"""Whether anything of a drive flows."""


@dataclass(frozen=True, slots=True)
class Watched:
    """A drive that is asked for changes.

    Attributes:
        told_at: when Microsoft told of a change last.
        changed_at: when a look found a change last.
        subscription: None where none was asked for yet.
    """

    drive_id: str
    name: str
    account_id: str
    remote_id: str
    told_at: int | None
    changed_at: int | None
    subscription: Subscription | None


def subscription_of(row: RowMapping | Mapping[str, Any]) -> Subscription:
    """Return the subscription of a row with the drive's id at Microsoft beside it."""
    return Subscription(
        subscription_id=row["subscription_id"],
        drive_id=row["drive_id"],
        account_id=row["account_id"],
        drive_remote_id=row["drive_remote_id"],
        state=SubscriptionState(row["state"]),
        secret_hash=row["secret_hash"],
        remote_id=row["remote_id"],
        asked_at=row["asked_at"],
        expires_at=row["expires_at"],
        retry_at=row["retry_at"],
        failures=row["failures"],
        wants_renewal=row["wants_renewal"],
        detail=row["detail"],
    )


_WITH_DRIVE = select(subscriptions, drives.c.remote_id.label("drive_remote_id")).join(
    drives, drives.c.id == subscriptions.c.drive_id
)


async def watched_drives(catalog: Catalog) -> list[Watched]:
    """Return the drives with a connection that flows, each with its subscription."""
    wanted = select(
        drives.c.id,
        drives.c.name,
        drives.c.account_id,
        drives.c.remote_id,
        drives.c.told_at,
        drives.c.changed_at,
    ).where(FLOWS)
    async with catalog.read() as connection:
        known = {
            row["drive_id"]: subscription_of(row)
            for row in (await connection.execute(_WITH_DRIVE)).mappings()
        }
        rows = await connection.execute(wanted.order_by(drives.c.id))
        return [
            Watched(
                drive_id=row["id"],
                name=row["name"],
                account_id=row["account_id"],
                remote_id=row["remote_id"],
                told_at=row["told_at"],
                changed_at=row["changed_at"],
                subscription=known.get(row["id"]),
            )
            for row in rows.mappings()
        ]


async def all_subscriptions(catalog: Catalog) -> list[Subscription]:
    """Return every subscription."""
    async with catalog.read() as connection:
        rows = await connection.execute(_WITH_DRIVE.order_by(subscriptions.c.drive_id))
        return [subscription_of(row) for row in rows.mappings()]


async def subscription_by_id(catalog: Catalog, subscription_id: str) -> Subscription | None:
    """Return a subscription by the id that stands in its address; None if there is none."""
    wanted = _WITH_DRIVE.where(subscriptions.c.subscription_id == subscription_id)
    async with catalog.read() as connection:
        row = (await connection.execute(wanted)).mappings().one_or_none()
        return None if row is None else subscription_of(row)


async def note_asked(catalog: Catalog, drive: Watched, *, secret_hash: str) -> Subscription:
    """Write that Microsoft may know of a new subscription from now on; an older one is forgotten.

    Args:
        secret_hash: of the word that it will show.
    """
    values: dict[str, Any] = {
        "drive_id": drive.drive_id,
        "subscription_id": catalog.ids.new(),
        "account_id": drive.account_id,
        "state": SubscriptionState.ASKED.value,
        "secret_hash": secret_hash,
        "remote_id": None,
        "asked_at": catalog.clock.now(),
        "expires_at": None,
        "retry_at": None,
        "failures": drive.subscription.failures if drive.subscription else 0,
        "wants_renewal": False,
        "detail": None,
    }
    async with catalog.write("subscription.ask") as connection:
        await upsert(connection, subscriptions, [values])
    return subscription_of({**values, "drive_remote_id": drive.remote_id})


async def note_granted(
    catalog: Catalog, one: Subscription, *, remote_id: str, expires_at: int
) -> bool:
    """Write that Microsoft granted it, or prolonged it; False where it was replaced meanwhile.

    The drive is due to be asked: what happened before the grant was told to nobody.
    """
    now = catalog.clock.now()
    async with catalog.write("subscription.granted") as connection:
        result = await connection.execute(
            update(subscriptions)
            .where(subscriptions.c.subscription_id == one.subscription_id)
            .values(
                state=SubscriptionState.LIVE.value,
                remote_id=remote_id,
                asked_at=now,
                expires_at=expires_at,
                retry_at=None,
                failures=0,
                wants_renewal=False,
                detail=None,
            )
        )
        if result.rowcount and one.state is not SubscriptionState.LIVE:
            await connection.execute(
                update(drives).where(drives.c.id == one.drive_id).values(told_at=now)
            )
    return bool(result.rowcount)


async def note_refused(
    catalog: Catalog, one: Subscription, *, detail: str, retry_at: int, is_lost: bool
) -> None:
    """Write that Microsoft did not grant it, or did not prolong it.

    Args:
        is_lost: whether nobody tells us any more, so that the drive is asked as often as others.
    """
    state = {"state": SubscriptionState.REFUSED.value} if is_lost else {}
    async with catalog.write("subscription.refused") as connection:
        await connection.execute(
            update(subscriptions)
            .where(subscriptions.c.subscription_id == one.subscription_id)
            .values(
                retry_at=retry_at,
                failures=subscriptions.c.failures + 1,
                detail=detail[:_LONGEST_DETAIL],
                **state,
            )
        )
        if is_lost:
            await connection.execute(
                update(drives).where(drives.c.id == one.drive_id).values(pace_ms=None)
            )


async def want_renewal(catalog: Catalog, subscription_id: str) -> None:
    """Write that Microsoft asked for a renewal."""
    async with catalog.write("subscription.renewal") as connection:
        await connection.execute(
            update(subscriptions)
            .where(subscriptions.c.subscription_id == subscription_id)
            .values(wants_renewal=True)
        )


async def forget_subscription(catalog: Catalog, one: Subscription) -> None:
    """Forget a subscription that Microsoft does not know any more."""
    async with catalog.write("subscription.forget") as connection:
        await connection.execute(
            delete(subscriptions).where(subscriptions.c.subscription_id == one.subscription_id)
        )
        await connection.execute(
            update(drives).where(drives.c.id == one.drive_id).values(pace_ms=None)
        )


async def note_told(catalog: Catalog, drive_ids: Iterable[str]) -> None:
    """Write that Microsoft told of changes: those drives are due."""
    now = catalog.clock.now()
    async with catalog.write("told") as connection:
        for some in batches(drive_ids):
            await connection.execute(
                update(drives).where(drives.c.id.in_(some)).values(told_at=now)
            )

"""An account that goes, with what was only listed through it to plan.

A plan remembers the drive that it listed, so that the next one is quick. Nothing but plans is lost
with such a drive, and it must not keep an account for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, exists, or_, select

from drivefeed.catalog.access_tables import credentials
from drivefeed.catalog.audit_log import record
from drivefeed.catalog.erasing import forget_items
from drivefeed.catalog.receipts import HAS_RECEIPT
from drivefeed.catalog.subscription_tables import subscriptions
from drivefeed.catalog.tables import accounts, connections, documents, drives, items, reminders
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.accounts import Account
    from drivefeed.catalog.engine import Catalog

_STAYS_CONNECTED = exists().where(
    connections.c.drive_id == drives.c.id, or_(connections.c.paused.is_(False), ~HAS_RECEIPT)
)
_IS_CONNECTED = exists().where(connections.c.drive_id == drives.c.id)
_HAS_DOCUMENTS = exists().where(documents.c.drive_id == drives.c.id)
_IS_TOLD = exists().where(subscriptions.c.drive_id == drives.c.id)
_ONLY_PLANNED = and_(~_IS_CONNECTED, ~_HAS_DOCUMENTS, ~_IS_TOLD)


async def remove_account(catalog: Catalog, one: Account, *, actor: str = "drivefeed") -> None:
    """Forget an account, its credentials, and the drives that were only listed to plan.

    Raises:
        NeedsAttention: a drive is or was connected through it, or the settings own it.
    """
    if one.declared:
        raise NeedsAttention(
            f"Account '{one.name}' comes from the settings; take it out there.",
            reason=Reason.MISCONFIGURED,
        )
    while await _clear_some(catalog, one):
        pass
    async with catalog.write("account.remove") as connection:
        for drive_id in await _planned(connection, one):
            await connection.execute(delete(items).where(items.c.drive_id == drive_id))
            await connection.execute(delete(reminders).where(reminders.c.subject_id == drive_id))
            await connection.execute(delete(drives).where(drives.c.id == drive_id))
        await connection.execute(
            delete(credentials).where(credentials.c.account_id == one.account_id)
        )
        await connection.execute(delete(accounts).where(accounts.c.id == one.account_id))
        await record(
            connection,
            org_id=one.org_id,
            actor=actor,
            action="account.removed",
            subject_id=one.account_id,
            before={"name": one.name, "sign_in": one.sign_in, "tenant_id": one.tenant_id},
        )


async def _clear_some(catalog: Catalog, one: Account) -> bool:
    """Forget some rows of a tree, which may have millions; whether there are more."""
    async with catalog.write("account.clear") as connection:
        for drive_id in await _planned(connection, one):
            if await forget_items(connection, drive_id):
                return True
    return False


async def _planned(connection: AsyncConnection, one: Account) -> list[str]:
    """Return the drives that were only listed to plan.

    Raises:
        NeedsAttention: another drive is read through the account, or was.
    """
    mine = select(drives.c.id, drives.c.name, _STAYS_CONNECTED.label("stays")).where(
        drives.c.account_id == one.account_id
    )
    kept = (await connection.execute(mine.where(~_ONLY_PLANNED).limit(1))).one_or_none()
    if kept is not None and kept.stays:
        raise NeedsAttention(
            f"Account '{one.name}' is how drive '{kept.name}' is read, so it stays. Disconnect "
            "its folders first, or give the account a new sign-in with 'drivefeed account "
            "reconnect'.",
            reason=Reason.MISCONFIGURED,
        )
    if kept is not None:
        raise NeedsAttention(
            f"Account '{one.name}' is how drive '{kept.name}' was read, and the catalog keeps what "
            "became of its files, so the account stays. To have it sign in no more, delete its "
            "secret or certificate in Microsoft Entra.",
            reason=Reason.MISCONFIGURED,
        )
    rows = await connection.execute(mine.order_by(drives.c.id))
    return [str(row.id) for row in rows]

"""The credentials of an account that nothing is read through any more."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import delete, select, update

from drivefeed.catalog.access_tables import credentials
from drivefeed.catalog.account_states import AccountState
from drivefeed.catalog.receipts import Receipt, keep_receipt
from drivefeed.catalog.subscription_tables import subscriptions
from drivefeed.catalog.tables import accounts, connections, drives
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection


async def account_to_sign_out(connection: AsyncConnection, each: Connection) -> str:
    """Return the id of the account that a connection alone is read through.

    Raises:
        NeedsAttention: another connection is read through it, or the settings own it.
    """
    found = await connection.execute(
        select(accounts.c.id, accounts.c.name, accounts.c.declared)
        .join(drives, drives.c.account_id == accounts.c.id)
        .where(drives.c.id == each.drive_id)
    )
    account = found.one()
    others = await _is_read_through(connection, account.id, without=each.connection_id)
    if others or account.declared:
        why = (
            "the settings own it; take it out there"
            if account.declared
            else "other connections are read through it"
        )
        raise NeedsAttention(
            f"Account '{account.name}' keeps its sign-in: {why}. Nothing was changed.",
            reason=Reason.MISCONFIGURED,
        )
    return str(account.id)


async def _is_read_through(connection: AsyncConnection, account_id: str, *, without: str) -> bool:
    """Whether anything flows through an account but for one connection."""
    asked = (
        select(connections.c.id)
        .join(drives, drives.c.id == connections.c.drive_id)
        .where(
            drives.c.account_id == account_id,
            connections.c.id != without,
            connections.c.paused.is_(False),
        )
    )
    return (await connection.execute(asked)).first() is not None


async def is_told_through(connection: AsyncConnection, account_id: str) -> bool:
    """Whether Microsoft may call because of an account, and only it can end that."""
    asked = select(subscriptions.c.drive_id).where(subscriptions.c.account_id == account_id)
    return (await connection.execute(asked)).first() is not None


async def sign_out_due(catalog: Catalog, receipt: Receipt) -> Receipt:
    """Remove the credential that a receipt still waits for, once nobody is told through it.

    Where the account was connected through again meanwhile, it keeps its credential.
    """
    mine = select(drives.c.account_id).where(drives.c.id == receipt.drive_id)
    async with catalog.write("disconnect.sign_out") as connection:
        account_id = str((await connection.execute(mine)).scalar_one())
        if await _is_read_through(connection, account_id, without=receipt.connection_id):
            return await keep_receipt(connection, replace(receipt, signs_out=False))
        if await is_told_through(connection, account_id):
            return receipt
        await sign_out_in(connection, account_id)
        return await keep_receipt(connection, replace(receipt, signed_out=True))


async def sign_out_in(connection: AsyncConnection, account_id: str) -> None:
    """Remove the credentials of an account, within a transaction."""
    await connection.execute(delete(credentials).where(credentials.c.account_id == account_id))
    await connection.execute(
        update(accounts)
        .where(accounts.c.id == account_id)
        .values(
            state=AccountState.NEEDS_SIGN_IN,
            reason=Reason.NEEDS_SIGN_IN,
            detail=None,
            user_name=None,
            revision=accounts.c.revision + 1,
        )
    )

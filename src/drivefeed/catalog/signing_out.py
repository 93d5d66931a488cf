"""The credentials of an account that nothing is read through any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select, update

from drivefeed.catalog.access_tables import credentials
from drivefeed.catalog.account_states import AccountState
from drivefeed.catalog.tables import accounts, connections, drives
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.domain.model import Connection


async def sign_out_in(connection: AsyncConnection, each: Connection) -> None:
    """Remove, within a transaction, the credentials of the account a connection is read through.

    Raises:
        NeedsAttention: another connection is read through it, or the settings own it.
    """
    found = await connection.execute(
        select(accounts.c.id, accounts.c.name, accounts.c.declared)
        .join(drives, drives.c.account_id == accounts.c.id)
        .where(drives.c.id == each.drive_id)
    )
    account = found.one()
    others = await connection.scalar(
        select(func.count())
        .select_from(connections)
        .join(drives, drives.c.id == connections.c.drive_id)
        .where(
            drives.c.account_id == account.id,
            connections.c.id != each.connection_id,
            connections.c.paused.is_(False),
        )
    )
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
    await connection.execute(delete(credentials).where(credentials.c.account_id == account.id))
    await connection.execute(
        update(accounts)
        .where(accounts.c.id == account.id)
        .values(
            state=AccountState.NEEDS_SIGN_IN,
            reason=Reason.NEEDS_SIGN_IN,
            detail=None,
            user_name=None,
            revision=accounts.c.revision + 1,
        )
    )

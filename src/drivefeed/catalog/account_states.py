"""Whether accounts can sign in, and why not; and whether how they do has changed."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import TYPE_CHECKING

from sqlalchemy import select, update

from drivefeed.catalog.tables import accounts
from drivefeed.domain.access import NEEDS_OPERATOR
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog


_PASSING = re.compile(
    r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|\d{4}-\d\d-\d\d[ T][\d:.]+Z?", re.IGNORECASE
)
"""Ids of requests and times."""


class AccountState(StrEnum):
    """Whether an account can sign in, and if not, who has to do something.

    *unreached*: the sign-in service did not answer the last time, so nobody knows.
    """

    OK = "ok"
    UNREACHED = "unreached"
    NEEDS_SIGN_IN = "needs_sign_in"
    MISCONFIGURED = "misconfigured"
    BLOCKED = "blocked"


def state_for(reason: Reason | None) -> AccountState:
    """Return the state that a refused sign-in means; what nobody here can cure is *blocked*."""
    if reason is None:
        return AccountState.OK
    if reason in NEEDS_OPERATOR:
        return AccountState.MISCONFIGURED
    if reason in {Reason.NEEDS_SIGN_IN, Reason.WRONG_USER}:
        return AccountState.NEEDS_SIGN_IN
    return AccountState.BLOCKED


async def note_state(
    catalog: Catalog, account_id: str, reason: Reason | None, detail: str = ""
) -> bool:
    """Record what became of a sign-in; tell whether that is news.

    The same again is not written; Microsoft's text differs each time by ids and a time.
    """
    state = state_for(reason)
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(accounts.c.state, accounts.c.reason, accounts.c.detail).where(
                accounts.c.id == account_id
            )
        )
        row = rows.one_or_none()
    if row is None:
        return False
    if (row.state, row.reason, _lasting(row.detail)) == (state, reason, _lasting(detail)):
        return False
    async with catalog.write("account.state") as connection:
        await connection.execute(
            update(accounts)
            .where(accounts.c.id == account_id)
            .values(state=state, reason=reason, detail=detail or None)
        )
    return True


async def note_unreached(catalog: Catalog, account_id: str, detail: str) -> None:
    """Record that the sign-in service did not answer; a refusal that is known stays."""
    async with catalog.write("account.unreached") as connection:
        await connection.execute(
            update(accounts)
            .where(
                accounts.c.id == account_id,
                accounts.c.state.in_([AccountState.OK, AccountState.UNREACHED]),
            )
            .values(state=AccountState.UNREACHED, reason=None, detail=detail)
        )


def _lasting(detail: str | None) -> str:
    return _PASSING.sub("", detail or "")


async def account_revisions(catalog: Catalog) -> dict[str, int]:
    """Return every account's revision by id; cheap enough to ask every few seconds."""
    async with catalog.read() as connection:
        rows = await connection.execute(select(accounts.c.id, accounts.c.revision))
        return {str(account_id): int(revision) for account_id, revision in rows}

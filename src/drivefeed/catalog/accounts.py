"""Accounts as rows: how each signs in, and whether it can."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select, update
from sqlalchemy import insert as plain_insert

from drivefeed.catalog.account_states import AccountState
from drivefeed.catalog.audit_log import record
from drivefeed.catalog.credentials import HAS_PENDING, put_in
from drivefeed.catalog.tables import accounts, connections, drives, orgs
from drivefeed.domain.errors import AlreadyExists, NeedsAttention, NotFound
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.credentials import CredentialKind
    from drivefeed.catalog.engine import Catalog
    from drivefeed.secrets.ring import KeyRing


class SignInKind(StrEnum):
    """How an account signs in."""

    SECRET = "secret"  # noqa: S105 - names a kind
    CERTIFICATE = "certificate"
    WORKLOAD = "workload"
    USER = "user"


@dataclass(frozen=True, slots=True)
class Account:
    """A row of ``accounts`` with its org's name and the number of drives read through it.

    Attributes:
        declared: whether the settings own it, its secret too.
        user_id: the home account id of who signed in.
        detail: what Microsoft said, for the operator.
        expires_at: when its secret or certificate ends, if known.
        revision: rises with each change of how it signs in; not with its state.
        has_pending: whether a new certificate waits for its first sign-in.
    """

    account_id: str
    org_id: str
    org: str
    name: str
    sign_in: SignInKind | None
    tenant_id: str
    client_id: str
    cloud: str
    authority: str | None
    graph_url: str | None
    ca_file: str | None
    token_file: str | None
    declared: bool
    user_name: str | None
    user_id: str | None
    state: AccountState
    reason: Reason | None
    detail: str | None
    expires_at: int | None
    revision: int
    created_at: int
    drives: int
    has_pending: bool


async def add_account(
    catalog: Catalog,
    ring: KeyRing,
    *,
    org_id: str,
    name: str,
    values: dict[str, Any],
    credential: tuple[CredentialKind, bytes] | None,
    actor: str = "drivefeed",
) -> str:
    """Make an account with its credential, both or neither; return its id.

    Args:
        values: further columns.
        actor: who does it, for the audit log.

    Raises:
        AlreadyExists: the org has an account of that name.
        NeedsAttention: there is no key to seal with.
    """
    account_id = catalog.ids.new()
    async with catalog.write("account.add") as connection:
        if await _id_of(connection, org_id, name) is not None:
            raise AlreadyExists(
                f"There is an account '{name}' already. Choose another name, or give it a new "
                f"sign-in with 'drivefeed account reconnect'."
            )
        await connection.execute(
            plain_insert(accounts).values(
                id=account_id,
                org_id=org_id,
                name=name,
                created_at=catalog.clock.now(),
                **values,
            )
        )
        if credential is not None:
            kind, plain = credential
            await put_in(connection, catalog, ring, account_id, kind=kind, plain=plain)
        await record(
            connection,
            org_id=org_id,
            actor=actor,
            action="account.added",
            subject_id=account_id,
            after={"name": name, **_shown(values)},
        )
    return account_id


async def change_account(
    catalog: Catalog,
    ring: KeyRing,
    account_id: str,
    *,
    values: dict[str, Any],
    credential: tuple[CredentialKind, bytes] | None,
    actor: str = "drivefeed",
) -> None:
    """Change how an account signs in; it counts as *ok* until somebody tried.

    Raises:
        NeedsAttention: there is no key to seal with.
    """
    async with catalog.write("account.change") as connection:
        rows = await connection.execute(select(accounts).where(accounts.c.id == account_id))
        before = rows.mappings().one()
        await connection.execute(
            update(accounts)
            .where(accounts.c.id == account_id)
            .values(**values, **_CALM, revision=accounts.c.revision + 1)
        )
        if credential is not None:
            kind, plain = credential
            await put_in(connection, catalog, ring, account_id, kind=kind, plain=plain)
        await record(
            connection,
            org_id=before["org_id"],
            actor=actor,
            action="account.changed",
            subject_id=account_id,
            before={name: before[name] for name in values},
            after=_shown(values),
        )


_CALM: dict[str, Any] = {"state": AccountState.OK, "reason": None, "detail": None}


async def declare_account(
    catalog: Catalog, *, org_id: str, name: str, values: dict[str, Any]
) -> str:
    """Make an account of the settings known, or bring it up to date; return its id."""
    wanted = {**values, "declared": True}
    async with catalog.write("account.declare") as connection:
        account_id = await _id_of(connection, org_id, name)
        if account_id is None:
            account_id = catalog.ids.new()
            await connection.execute(
                plain_insert(accounts).values(
                    id=account_id,
                    org_id=org_id,
                    name=name,
                    created_at=catalog.clock.now(),
                    **wanted,
                )
            )
            return account_id
        rows = await connection.execute(select(accounts).where(accounts.c.id == account_id))
        row = rows.mappings().one()
        if any(row[key] != value for key, value in wanted.items()):
            await connection.execute(
                update(accounts)
                .where(accounts.c.id == account_id)
                .values(**wanted, **_CALM, revision=accounts.c.revision + 1)
            )
    return account_id


async def all_accounts(catalog: Catalog) -> list[Account]:
    """Return all accounts, by org and name."""
    used = (
        select(func.count(connections.c.drive_id.distinct()))
        .join(drives, drives.c.id == connections.c.drive_id)
        .where(drives.c.account_id == accounts.c.id)
        .correlate(accounts)
        .scalar_subquery()
    )
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(accounts, orgs.c.name.label("org"), used.label("drives"), HAS_PENDING)
            .join(orgs, orgs.c.id == accounts.c.org_id)
            .order_by(orgs.c.name, accounts.c.name)
        )
        return [_account_of(row) for row in rows.mappings()]


async def find_account(catalog: Catalog, which: str, *, org: str | None = None) -> Account:
    """Return an account by name or id.

    Raises:
        NotFound: there is none.
        NeedsAttention: several orgs have one of that name.
    """
    known = await all_accounts(catalog)
    found = [
        one
        for one in known
        if one.account_id == which
        or (one.name.casefold() == which.casefold() and org in {None, one.org})
    ]
    if not found:
        names = ", ".join(f"'{one.name}'" for one in known) or "none"
        raise NotFound(f"There is no account '{which}'. Known: {names}.")
    if len(found) > 1:
        raise NeedsAttention(
            f"Several organizations have an account '{which}': "
            f"{', '.join(one.org for one in found)}. Say which with --org.",
            reason=Reason.MISCONFIGURED,
        )
    return found[0]


def _shown(values: dict[str, Any]) -> dict[str, Any]:
    """Return columns for the audit log; credentials are in none of them."""
    return {name: value for name, value in values.items() if value is not None}


async def _id_of(connection: AsyncConnection, org_id: str, name: str) -> str | None:
    rows = await connection.execute(
        select(accounts.c.id).where(accounts.c.org_id == org_id, accounts.c.name == name)
    )
    found = rows.scalar_one_or_none()
    return None if found is None else str(found)


def _account_of(row: RowMapping) -> Account:
    names = Account.__dataclass_fields__.keys() - {"account_id", "sign_in", "state", "reason"}
    facts = {name: row[name] for name in names}
    facts["tenant_id"] = facts["tenant_id"] or ""
    facts["client_id"] = facts["client_id"] or ""
    return Account(
        account_id=row["id"],
        sign_in=SignInKind(row["sign_in"]) if row["sign_in"] else None,
        state=AccountState(row["state"]),
        reason=Reason(row["reason"]) if row["reason"] else None,
        **facts,
    )

"""Sealed credentials of accounts: a secret, a certificate, or a person's tokens.

A row is replaced only by whoever knows its revision, so that a late writer never covers a newer
value. Sealing may wait for a key command, so it is done in threads.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, exists, func, select, update
from sqlalchemy import insert as plain_insert

from drivefeed.catalog.access_tables import credentials
from drivefeed.catalog.dialect import insert_once
from drivefeed.catalog.tables import accounts
from drivefeed.domain.errors import NeedsAttention, NotFound
from drivefeed.domain.reasons import Reason
from drivefeed.secrets.ring import Sealed

if TYPE_CHECKING:
    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.secrets.ring import KeyRing


class CredentialKind(StrEnum):
    """What a row holds."""

    SECRET = "secret"  # noqa: S105 - names a kind
    CERTIFICATE = "certificate"
    PENDING = "pending"
    """A new certificate that no sign-in succeeded with; see :mod:`drivefeed.catalog.renewal`."""
    TOKENS = "tokens"


HAS_PENDING: Final = (
    exists()
    .where(credentials.c.account_id == accounts.c.id, credentials.c.kind == CredentialKind.PENDING)
    .correlate(accounts)
    .label("has_pending")
)
"""A column beside those of an account: whether a new certificate waits for its first sign-in."""


@dataclass(frozen=True, slots=True)
class Credential:
    """An opened credential.

    Attributes:
        revision: rises with every new value; what :func:`save` wants to hear back.
    """

    plain: bytes = field(repr=False)
    revision: int


async def load(
    catalog: Catalog, ring: KeyRing, account_id: str, kind: CredentialKind
) -> Credential | None:
    """Return an account's credential of a kind, or None.

    Raises:
        NeedsAttention: it cannot be opened; the sentence says why.
    """
    async with catalog.read() as connection:
        row = await _row(connection, account_id, kind)
    if row is None:
        return None
    sealed = Sealed(row["sealed"], row["key_id"])
    plain = await asyncio.to_thread(ring.unseal, sealed, row_id=row["id"])
    return Credential(plain, row["revision"])


async def revision_of(catalog: Catalog, account_id: str, kind: CredentialKind) -> int | None:
    """Return the revision of a credential without opening it, or None where there is none."""
    async with catalog.read() as connection:
        row = await _row(connection, account_id, kind)
    return None if row is None else int(row["revision"])


async def ensure_key(connection: AsyncConnection, ring: KeyRing) -> bool:
    """Make the key file of a new installation; tell whether it was made.

    Raises:
        NeedsAttention: the catalog holds sealed secrets already, and their key file is gone.
    """
    if not await asyncio.to_thread(lambda: ring.wants_first_key):
        return False
    sealed = await _census(connection)
    if sealed:
        count = sum(sealed.values())
        raise NeedsAttention(
            f"The catalog holds {count} {'secret' if count == 1 else 'secrets'} sealed with key "
            f"{', '.join(sealed)}, and {ring.place.name} is gone. Bring it back from its copy: a "
            "new key could not open them. If it is lost for good, write a new one there, made by "
            "'openssl rand -base64 32' and readable by its owner alone, and give every account its "
            "secret again with 'drivefeed account reconnect'.",
            reason=Reason.SECRETS_LOCKED,
        )
    return await asyncio.to_thread(ring.make_first_key)


async def save(
    catalog: Catalog,
    ring: KeyRing,
    account_id: str,
    kind: CredentialKind,
    plain: bytes,
    *,
    after: int | None,
) -> int | None:
    """Write a credential in place of the one with revision ``after`` (None: there is none yet).

    Returns:
        Its revision; None where another writer was quicker, and nothing was written.

    Raises:
        NotFound: the account was removed.
        NeedsAttention: there is no key to seal with.
    """
    async with catalog.read() as connection:
        row = await _row(connection, account_id, kind)
        org_id = await _org_of(connection, account_id)
        await ensure_key(connection, ring)
    if (None if row is None else row["revision"]) != after:
        return None
    row_id = catalog.ids.new() if row is None else str(row["id"])
    sealed = await asyncio.to_thread(ring.seal, plain, row_id=row_id)
    now = catalog.clock.now()
    revision = (after or 0) + 1
    values = {"sealed": sealed.value, "key_id": sealed.key_id, "updated_at": now}
    async with catalog.write("credential.save") as connection:
        if after is None:
            identity = {"id": row_id, "org_id": org_id, "account_id": account_id, "kind": kind}
            written = await insert_once(
                connection, credentials, {**identity, **values, "revision": revision}
            )
        else:
            result = await connection.execute(
                update(credentials)
                .where(credentials.c.id == row_id, credentials.c.revision == after)
                .values(**values, revision=revision)
            )
            written = result.rowcount == 1
    return revision if written else None


async def put_in(
    connection: AsyncConnection,
    catalog: Catalog,
    ring: KeyRing,
    account_id: str,
    *,
    kind: CredentialKind,
    plain: bytes,
) -> None:
    """Write a credential within a transaction that changes its account, whatever was there.

    Credentials of other kinds are removed: an account has one way of signing in. A new certificate
    that is not accepted yet leaves them.

    Raises:
        NeedsAttention: there is no key to seal with.
    """
    row = await _row(connection, account_id, kind)
    row_id = catalog.ids.new() if row is None else str(row["id"])
    await ensure_key(connection, ring)
    sealed = await asyncio.to_thread(ring.seal, plain, row_id=row_id)
    values = {
        "sealed": sealed.value,
        "key_id": sealed.key_id,
        "updated_at": catalog.clock.now(),
    }
    if row is None:
        await connection.execute(
            plain_insert(credentials).values(
                id=row_id,
                org_id=await _org_of(connection, account_id),
                account_id=account_id,
                kind=kind,
                **values,
            )
        )
    else:
        await connection.execute(
            update(credentials)
            .where(credentials.c.id == row_id)
            .values(**values, revision=credentials.c.revision + 1)
        )
    if kind is not CredentialKind.PENDING:
        await connection.execute(
            delete(credentials).where(
                credentials.c.account_id == account_id, credentials.c.kind != kind
            )
        )


async def untouched_tokens(catalog: Catalog, *, since: int) -> list[str]:
    """Return the ids of accounts whose tokens were last kept before an instant."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(credentials.c.account_id).where(
                credentials.c.kind == CredentialKind.TOKENS, credentials.c.updated_at < since
            )
        )
        return [str(account_id) for account_id in rows.scalars()]


async def census(catalog: Catalog) -> dict[str, int]:
    """Return how many credentials each key sealed, by key id."""
    async with catalog.read() as connection:
        return await _census(connection)


async def _census(connection: AsyncConnection) -> dict[str, int]:
    rows = await connection.execute(
        select(credentials.c.key_id, func.count()).group_by(credentials.c.key_id)
    )
    return Counter({str(key_id): int(count) for key_id, count in rows})


async def _row(
    connection: AsyncConnection, account_id: str, kind: CredentialKind
) -> RowMapping | None:
    rows = await connection.execute(
        select(credentials).where(
            credentials.c.account_id == account_id, credentials.c.kind == kind
        )
    )
    return rows.mappings().one_or_none()


async def _org_of(connection: AsyncConnection, account_id: str) -> str:
    rows = await connection.execute(select(accounts.c.org_id).where(accounts.c.id == account_id))
    org_id = rows.scalar_one_or_none()
    if org_id is None:
        raise NotFound(f"There is no account {account_id} in the catalog.")
    return str(org_id)

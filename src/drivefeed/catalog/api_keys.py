"""What lets somebody in: API keys, and the rows they share with links and sessions.

Links that sign a browser in once, and browsers' sessions, are in ``drivefeed.catalog.sessions``. Of
each only the SHA-256 is kept; the text itself is shown once. It has 256 random bits, so nobody
finds one by trying, and a fast hash is enough.
"""

from __future__ import annotations

import hashlib
import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sqlalchemy import insert, select, update

from drivefeed.catalog.access_tables import api_keys
from drivefeed.catalog.audit_log import record
from drivefeed.catalog.tables import orgs
from drivefeed.domain.errors import AlreadyExists, PartDown
from drivefeed.domain.names import usable_name

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import ColumnElement, RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog

_USED_EVERY_MS: Final = 60_000
_LONGEST_TEXT: Final = 200
_OURSELVES: Final = "drivefeed"
"""Who acts where no person is named."""
_SECRET_BYTES: Final = 32
_PREFIX_BYTES: Final = 4


class Scope(StrEnum):
    """What a key may do; each includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


class Kind(StrEnum):
    """What a row lets in; also how its text begins, so that none can stand for another."""

    KEY = "df"
    LINK = "dl"
    SESSION = "ds"


@dataclass(frozen=True, slots=True)
class ApiKey:
    """A key, a link or a session, without its secret. Instants are milliseconds since the epoch.

    Attributes:
        prefix: the first characters of its text, by which people tell keys apart.
        used_at: when it was last used, to the minute.
    """

    key_id: str
    kind: Kind
    org_id: str
    org_name: str
    name: str
    prefix: str
    scopes: frozenset[Scope]
    expires_at: int | None
    used_at: int | None
    revoked_at: int | None
    created_at: int

    def allows(self, scope: Scope) -> bool:
        """Whether one of its scopes is this one, or includes it."""
        order = list(Scope)
        return any(order.index(one) >= order.index(scope) for one in self.scopes)

    def is_valid(self, now: int) -> bool:
        """Whether it still lets anybody in."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)


@dataclass(frozen=True, slots=True)
class FreshKey:
    """A key that was just made, with its text, which is shown once and kept nowhere."""

    key: ApiKey
    text: str = field(repr=False)


async def create_key(
    catalog: Catalog,
    *,
    org_id: str,
    name: str,
    scopes: Collection[Scope] = (Scope.READ,),
    lives_ms: int | None = None,
    actor: str = _OURSELVES,
) -> FreshKey:
    """Make an API key of an org.

    Args:
        lives_ms: how long it is valid; None for as long as nobody revokes it.
        actor: who makes it, for the audit log.

    Raises:
        AlreadyExists: a key of the org that still lets somebody in is called so.
        NeedsAttention: it is no name.
    """
    return await create_row(
        catalog,
        Kind.KEY,
        org_id=org_id,
        name=usable_name(name),
        scopes=scopes,
        lives_ms=lives_ms,
        actor=actor,
    )


async def key_behind(catalog: Catalog, text: str, kind: Kind) -> ApiKey | None:
    """Return the valid key or session with this text, and note that it was used; None for others.

    The use is written at most once a minute; where nothing can be written, it is not.
    """
    if len(text) > _LONGEST_TEXT or not text.startswith(f"{kind.value}_"):
        return None
    now = catalog.clock.now()
    found = await _select(catalog, (api_keys.c.hash == hash_of(text)) & _is(kind))
    if not found or not found[0].is_valid(now):
        return None
    (one,) = found
    if one.used_at is None or one.used_at <= now - _USED_EVERY_MS:
        with suppress(PartDown):
            async with catalog.write("key.used") as connection:
                await connection.execute(
                    update(api_keys).where(api_keys.c.id == one.key_id).values(used_at=now)
                )
    return one


async def list_keys(catalog: Catalog, *, org_id: str | None = None) -> list[ApiKey]:
    """Return the API keys of an org, or of all; links and sessions are not among them."""
    where = _is(Kind.KEY)
    return await _select(
        catalog, where if org_id is None else where & (api_keys.c.org_id == org_id)
    )


async def create_row(
    catalog: Catalog,
    kind: Kind,
    *,
    org_id: str,
    name: str,
    scopes: Collection[Scope],
    lives_ms: int | None,
    made_from: str | None = None,
    actor: str = _OURSELVES,
) -> FreshKey:
    """Make a key, a link or a session.

    Args:
        lives_ms: how long it is valid; None for as long as nobody revokes it.
        made_from: the id of the key that a session ends with.
    """
    prefix = f"{kind.value}_{secrets.token_hex(_PREFIX_BYTES)}"
    text = f"{prefix}_{secrets.token_urlsafe(_SECRET_BYTES)}"
    now = catalog.clock.now()
    key_id = catalog.ids.new()
    async with catalog.write("key.create") as connection:
        if kind is Kind.KEY:
            await _refuse_taken(connection, org_id, name, now)
        await connection.execute(
            insert(api_keys).values(
                id=key_id,
                org_id=org_id,
                name=name,
                hash=hash_of(text),
                prefix=prefix,
                scopes=" ".join(scope for scope in Scope if scope in scopes),
                is_link=kind is Kind.LINK,
                is_session=kind is Kind.SESSION,
                made_from=made_from,
                expires_at=None if lives_ms is None else now + lives_ms,
                created_at=now,
            )
        )
        if kind is not Kind.SESSION:
            words = sorted(scope.value for scope in scopes)
            await record(
                connection,
                org_id=org_id,
                actor=actor,
                action=f"{kind.name.lower()}.created",
                subject_id=key_id,
                after={"name": name, "prefix": prefix, "scopes": words, "lives_ms": lives_ms},
            )
    (made,) = await _select(catalog, api_keys.c.id == key_id)
    return FreshKey(made, text)


async def _refuse_taken(connection: AsyncConnection, org_id: str, name: str, now: int) -> None:
    """Refuse a name by which two keys that let somebody in could not be told apart."""
    found = await connection.execute(
        select(api_keys.c.name, api_keys.c.prefix).where(
            _is(Kind.KEY),
            api_keys.c.org_id == org_id,
            api_keys.c.revoked_at.is_(None),
            api_keys.c.expires_at.is_(None) | (api_keys.c.expires_at > now),
        )
    )
    for taken, prefix in found:
        if taken.casefold() == name.casefold():
            raise AlreadyExists(
                f"There is an API key '{taken}' ({prefix}) already. Choose another name, or end "
                "that one with 'drivefeed key revoke'."
            )


async def _select(catalog: Catalog, where: ColumnElement[bool]) -> list[ApiKey]:
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(api_keys, orgs.c.name.label("org_name"))
            .join(orgs, orgs.c.id == api_keys.c.org_id)
            .where(where)
            .order_by(api_keys.c.created_at, api_keys.c.id)
        )
        return [_key_of(row) for row in rows.mappings()]


def _is(kind: Kind) -> ColumnElement[bool]:
    return api_keys.c.is_link.is_(kind is Kind.LINK) & api_keys.c.is_session.is_(
        kind is Kind.SESSION
    )


def _key_of(row: RowMapping) -> ApiKey:
    kind = Kind.LINK if row["is_link"] else Kind.SESSION if row["is_session"] else Kind.KEY
    return ApiKey(
        key_id=row["id"],
        kind=kind,
        org_id=row["org_id"],
        org_name=row["org_name"],
        name=row["name"],
        prefix=row["prefix"],
        scopes=frozenset(Scope(word) for word in row["scopes"].split()),
        expires_at=row["expires_at"],
        used_at=row["used_at"],
        revoked_at=row["revoked_at"],
        created_at=row["created_at"],
    )


def hash_of(text: str) -> str:
    """Return what is kept of a key's text."""
    return hashlib.sha256(text.encode()).hexdigest()

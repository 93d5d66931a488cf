"""Browsers sign in: links that work once, and the sessions that come of them or of a key.

Both are rows beside the API keys; those that are over are deleted when the next one is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, select, update

from drivefeed.catalog.access_tables import api_keys
from drivefeed.catalog.api_keys import ApiKey, FreshKey, Kind, Scope, create_row, hash_of

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog

_MINUTE_MS: Final = 60_000
LINK_LIVES_MS: Final = 10 * _MINUTE_MS
SESSION_LIVES_MS: Final = 12 * 60 * _MINUTE_MS


async def create_link(
    catalog: Catalog, *, org_id: str, name: str, lives_ms: int = LINK_LIVES_MS
) -> FreshKey:
    """Make the secret of a link that signs one browser in, once."""
    await _forget_ended(catalog)
    return await create_row(
        catalog,
        Kind.LINK,
        org_id=org_id,
        name=name,
        scopes=(Scope.READ,),
        lives_ms=lives_ms,
        actor=name,
    )


async def redeem_link(catalog: Catalog, text: str) -> FreshKey | None:
    """Use a link up and return the session it becomes; None if it is unknown, over, or used."""
    now = catalog.clock.now()
    usable = (
        (api_keys.c.hash == hash_of(text))
        & api_keys.c.is_link
        & api_keys.c.revoked_at.is_(None)
        & (api_keys.c.expires_at > now)
    )
    async with catalog.read() as connection:
        # Whoever tries addresses keeps nobody from writing.
        if await connection.scalar(select(api_keys.c.id).where(usable)) is None:
            return None
    async with catalog.write("session.begin") as connection:
        # The one statement decides which of two browsers was first.
        spent = await connection.execute(
            update(api_keys)
            .where(usable)
            .values(used_at=now, revoked_at=now)
            .returning(api_keys.c.org_id, api_keys.c.name)
        )
        row = spent.mappings().one_or_none()
    if row is None:
        return None
    return await create_row(
        catalog,
        Kind.SESSION,
        org_id=row["org_id"],
        name=row["name"],
        scopes=(Scope.READ,),
        lives_ms=SESSION_LIVES_MS,
    )


async def open_session(catalog: Catalog, key: ApiKey) -> FreshKey:
    """Sign a browser in by a key; the session ends with the key and can only read."""
    lives_ms = SESSION_LIVES_MS
    if key.expires_at is not None:
        lives_ms = min(lives_ms, key.expires_at - catalog.clock.now())
    await _forget_ended(catalog)
    return await create_row(
        catalog,
        Kind.SESSION,
        org_id=key.org_id,
        name=key.name,
        scopes=(Scope.READ,),
        lives_ms=lives_ms,
        made_from=key.key_id,
    )


async def end_session(catalog: Catalog, session: ApiKey) -> None:
    """Sign a browser out."""
    async with catalog.write("session.end") as connection:
        await connection.execute(
            delete(api_keys).where(api_keys.c.id == session.key_id, api_keys.c.is_session)
        )


async def _forget_ended(catalog: Catalog) -> None:
    """Delete links and sessions that are over; keys stay, so that people can look at them."""
    now = catalog.clock.now()
    async with catalog.write("session.forget") as connection:
        await connection.execute(
            delete(api_keys).where(
                api_keys.c.is_link | api_keys.c.is_session,
                (api_keys.c.expires_at <= now) | api_keys.c.revoked_at.is_not(None),
            )
        )

"""API keys are ended, with the browsers that they signed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import update

from drivefeed.catalog.access_tables import api_keys
from drivefeed.catalog.api_keys import ApiKey, list_keys
from drivefeed.catalog.audit_log import record
from drivefeed.domain.errors import NeedsAttention, NotFound
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog


async def revoke_key(
    catalog: Catalog, which: str, *, org_id: str | None = None, actor: str = "drivefeed"
) -> list[ApiKey]:
    """End a key named by its id, prefix or name, with the sessions it signed in.

    Returns:
        The key that was ended; none where it was ended before.

    Raises:
        NotFound: no key is called so.
        NeedsAttention: several that let somebody in are called so, in different orgs perhaps.
    """
    named = [
        one
        for one in await list_keys(catalog, org_id=org_id)
        if which in {one.key_id, one.prefix, one.name}
    ]
    if not named:
        raise NotFound(
            f"There is no API key '{which}'. 'drivefeed key list' shows those that there are."
        )
    now = catalog.clock.now()
    ending = [one for one in named if one.revoked_at is None]
    # One that is over by itself is no reason to ask.
    ending = [one for one in ending if one.is_valid(now)] or ending
    if len(ending) > 1:
        known = ", ".join(f"{one.prefix} (of '{one.org_name}')" for one in ending)
        raise NeedsAttention(
            f"Several API keys are called '{which}': {known}. Say how the one begins that shall "
            "end.",
            reason=Reason.MISCONFIGURED,
        )
    async with catalog.write("key.revoke") as connection:
        for one in ending:
            await connection.execute(
                update(api_keys)
                .where(
                    (api_keys.c.id == one.key_id) | (api_keys.c.made_from == one.key_id),
                    api_keys.c.revoked_at.is_(None),
                )
                .values(revoked_at=now)
            )
            await record(
                connection,
                org_id=one.org_id,
                actor=actor,
                action="key.revoked",
                subject_id=one.key_id,
                before={"name": one.name, "prefix": one.prefix},
            )
    return ending

"""``init``: an installation from nothing; safe to run again."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from drivefeed.account_parts import open_ring
from drivefeed.bootstrap import open_memory
from drivefeed.catalog.api_keys import Scope, create_key, list_keys
from drivefeed.catalog.credentials import census
from drivefeed.catalog.orgs import add_org, all_orgs
from drivefeed.cli.context import os_user, run, settings_for_commands
from drivefeed.cli.org import usable_name
from drivefeed.cli.output import escape, print_json, say
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.secrets.ring import KeyRing
    from drivefeed.settings import Settings

NEXT = (
    "drivefeed account add NAME --client-id … --tenant … --make-certificate",
    "drivefeed account test NAME",
    "drivefeed up",
)
"""What follows, as it is typed."""


@dataclass(frozen=True, slots=True)
class Installation:
    """What there is after ``init``.

    Attributes:
        key_made: whether the key that seals secrets is a new one.
        org_made: whether the org is a new one.
        api_key: the first API key, shown once; None where none was made.
    """

    data_dir: str
    catalog: str
    keys: str
    key_id: str
    key_made: bool
    org: str
    org_id: str
    org_made: bool
    api_key: str | None


def initialise(org: str, *, as_json: bool) -> None:
    """Make what an installation needs, tell what there is, and what to do next."""
    made = run(_initialise(settings_for_commands(), usable_name(org)))
    if as_json:
        print_json({**asdict(made), "next": NEXT})
        return
    say(f"Data folder   {escape(made.data_dir)}")
    say(f"Catalog       {escape(made.catalog)}")
    say(f"Secret key    {made.key_id}, from {escape(made.keys)}{_news(made=made.key_made)}")
    say(f"Organization  {escape(made.org)}{_news(made=made.org_made)}")
    if made.key_made:
        say(
            "\nKeep a copy of the secret key somewhere else than your backups of the catalog: "
            "without it, nobody can open the secrets in there, and neither can you."
        )
    if made.api_key is not None:
        say(f"\nThe first API key, shown this once: {escape(made.api_key)}")
    say("\nNext:")
    for line in NEXT:
        say(escape(line), indent=2)


def _news(*, made: bool) -> str:
    return " (new)" if made else " (was there)"


async def _initialise(settings: Settings, org: str) -> Installation:
    async with open_memory(settings) as catalog:
        ring = open_ring(settings)
        key_made = await _make_key(catalog, ring)
        key_id = await asyncio.to_thread(lambda: ring.newest.key_id)
        known = {one.name: one.org_id for one in await all_orgs(catalog)}
        org_made = org not in known
        org_id = await add_org(catalog, org, actor=os_user()) if org_made else known[org]
        api_key = await first_api_key(catalog, org_id)
    return Installation(
        data_dir=str(settings.data_dir.absolute()),
        catalog=_words_of(settings) if settings.database_url else "in the data folder",
        keys=ring.place.name,
        key_id=key_id,
        key_made=key_made,
        org=org,
        org_id=org_id,
        org_made=org_made,
        api_key=api_key,
    )


def _words_of(settings: Settings) -> str:
    is_postgres = settings.catalog_url.startswith("postgres")
    return "in Postgres" if is_postgres else "a database of its own"


async def _make_key(catalog: Catalog, ring: KeyRing) -> bool:
    """Make the key file where there is none; tell whether it was made.

    Raises:
        NeedsAttention: there are secrets already, and the file that opens them is gone.
    """
    from drivefeed.secrets.places import KeyFile

    place = ring.place
    if not isinstance(place, KeyFile) or not place.may_make or place.path.exists():
        return False
    sealed = await census(catalog)
    if sealed:
        raise NeedsAttention(
            f"The catalog holds {sum(sealed.values())} secrets that key {', '.join(sealed)} "
            f"sealed, and the key file '{place.path}' is gone. Bring it back; a new key could not "
            "open them.",
            reason=Reason.MISCONFIGURED,
        )
    return await asyncio.to_thread(place.make)


async def first_api_key(catalog: Catalog, org_id: str) -> str | None:
    """Make the first API key of a new installation and return it; None where there is one."""
    if await list_keys(catalog):
        return None
    made = await create_key(
        catalog, org_id=org_id, name="first", scopes=[Scope.ADMIN], actor=os_user()
    )
    return made.text

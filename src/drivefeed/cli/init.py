"""``init``: an installation from nothing; safe to run again."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from drivefeed.account_parts import open_ring
from drivefeed.bootstrap import open_memory
from drivefeed.catalog.accounts import all_accounts
from drivefeed.catalog.api_keys import Scope, create_key, list_keys
from drivefeed.catalog.credentials import ensure_key
from drivefeed.catalog.orgs import add_org, all_orgs
from drivefeed.cli.context import os_user, run, settings_for_commands
from drivefeed.cli.org import usable_name
from drivefeed.cli.output import escape, print_json, say

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.settings import Settings

NEXT = (
    "drivefeed account add NAME --client-id … --tenant … --make-certificate",
    "drivefeed account test NAME",
    "drivefeed up",
)
"""What follows, as it is typed."""
NEXT_WITH_ACCOUNT = ("drivefeed doctor", "drivefeed connect ADDRESS", "drivefeed up")
"""What follows where there is an account already."""


@dataclass(frozen=True, slots=True)
class Installation:
    """What there is after ``init``.

    Attributes:
        key_made: whether the key that seals secrets is a new one.
        org_made: whether the org is a new one.
        api_key: the first API key, shown once; None where none was made.
        next: what follows, as it is typed.
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
    next: tuple[str, ...]


def initialise(org: str, *, as_json: bool) -> None:
    """Make what an installation needs, tell what there is, and what to do next."""
    made = run(_initialise(settings_for_commands(), usable_name(org)))
    if as_json:
        print_json(asdict(made))
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
    for line in made.next:
        say(escape(line), indent=2)


def _news(*, made: bool) -> str:
    return " (new)" if made else " (was there)"


async def _initialise(settings: Settings, org: str) -> Installation:
    async with open_memory(settings) as catalog:
        ring = open_ring(settings)
        async with catalog.read() as connection:
            key_made = await ensure_key(connection, ring)
        key_id = await asyncio.to_thread(lambda: ring.newest.key_id)
        known = {one.name: one.org_id for one in await all_orgs(catalog)}
        org_made = org not in known
        org_id = await add_org(catalog, org, actor=os_user()) if org_made else known[org]
        api_key = await first_api_key(catalog, org_id)
        has_account = bool(settings.accounts or await all_accounts(catalog))
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
        next=NEXT_WITH_ACCOUNT if has_account else NEXT,
    )


def _words_of(settings: Settings) -> str:
    is_postgres = settings.catalog_url.startswith("postgres")
    return "in Postgres" if is_postgres else "a database of its own"


async def first_api_key(catalog: Catalog, org_id: str) -> str | None:
    """Make the first API key of a new installation and return it; None where there is one."""
    if await list_keys(catalog):
        return None
    made = await create_key(
        catalog, org_id=org_id, name="first", scopes=[Scope.ADMIN], actor=os_user()
    )
    return made.text

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
from drivefeed.catalog.listing import org_named
from drivefeed.catalog.orgs import add_org, all_orgs
from drivefeed.cli.context import os_user, run, settings_for_commands
from drivefeed.cli.init_embedding import (
    ask_for_embedding,
    may_ask,
    try_wish,
    wish_of,
    words_of,
    write_embedding,
)
from drivefeed.cli.org import usable_name
from drivefeed.cli.output import escape, print_json, say
from drivefeed.domain.errors import AlreadyExists

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.cli.init_embedding import EmbeddingAsked
    from drivefeed.setting_sections import EmbeddingSettings
    from drivefeed.settings import Settings

NEXT = (
    "drivefeed account add NAME --client-id … --tenant … --make-certificate",
    "drivefeed account test NAME",
    "drivefeed connect ADDRESS",
    "drivefeed up",
)
"""What follows, as it is typed."""
NEXT_WITH_ACCOUNT = ("drivefeed doctor", "drivefeed connect ADDRESS", "drivefeed up")
"""What follows where there is an account already."""
REINDEX = ("drivefeed reindex",)
"""What follows first where there is an index that was made with another model."""


@dataclass(frozen=True, slots=True)
class Installation:
    """What there is after ``init``.

    Attributes:
        key_made: whether the key that seals secrets is a new one.
        org_made: whether the org is a new one.
        embedding: the provider and model that the settings ask for.
        embedding_file: the settings file that the choice was written to; None where none was.
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
    embedding: str
    embedding_file: str | None
    api_key: str | None
    next: tuple[str, ...]


def initialise(org: str, asked: EmbeddingAsked, *, as_json: bool) -> None:
    """Make what an installation needs, tell what there is, and what to do next."""
    settings, org = settings_for_commands(), usable_name(org)
    if may_ask(settings, asked, as_json=as_json) and run(_is_new(settings)):
        asked = ask_for_embedding()
    made = run(_initialise(settings, org, wish_of(asked, settings)))
    if as_json:
        print_json(asdict(made))
        return
    say(f"Data folder   {escape(made.data_dir)}")
    say(f"Catalog       {escape(made.catalog)}")
    say(f"Secret key    {made.key_id}, from {escape(made.keys)}{_news(made=made.key_made)}")
    say(f"Organization  {escape(made.org)}{_news(made=made.org_made)}")
    written = f", written to {escape(made.embedding_file)}" if made.embedding_file else ""
    say(f"Embedding     {escape(made.embedding)}{written}")
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


async def _is_new(settings: Settings) -> bool:
    async with open_memory(settings) as catalog:
        return not await all_orgs(catalog)


async def _initialise(settings: Settings, org: str, wish: EmbeddingSettings | None) -> Installation:
    async with open_memory(settings) as catalog:
        wanted = wish or settings.embedding
        file, is_other = None, False
        if wish is not None:
            is_other = await try_wish(settings, catalog, wish)
            file = await asyncio.to_thread(write_embedding, settings, wish)
        ring = open_ring(settings)
        async with catalog.read() as connection:
            key_made = await ensure_key(connection, ring)
        key_id = await asyncio.to_thread(lambda: ring.newest.key_id)
        org_id, org_made = await _org_of(catalog, org)
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
        embedding=words_of(wanted),
        embedding_file=str(file) if file else None,
        api_key=api_key,
        next=(*(REINDEX if is_other else ()), *(NEXT_WITH_ACCOUNT if has_account else NEXT)),
    )


async def _org_of(catalog: Catalog, name: str) -> tuple[str, bool]:
    """Return an org's id, and whether it was made for that."""
    for one in await all_orgs(catalog):
        if one.name == name:
            return one.org_id, False
    try:
        return await add_org(catalog, name, actor=os_user()), True
    except AlreadyExists:
        # Somebody else initialises at the same moment.
        return await org_named(catalog, name), False


def _words_of(settings: Settings) -> str:
    is_postgres = settings.catalog_url.startswith("postgres")
    return "in Postgres" if is_postgres else "a database of its own"


async def first_api_key(catalog: Catalog, org_id: str) -> str | None:
    """Make the first API key of a new installation and return it; None where there is one."""
    if await list_keys(catalog):
        return None
    try:
        made = await create_key(
            catalog, org_id=org_id, name="first", scopes=[Scope.ADMIN], actor=os_user()
        )
    except AlreadyExists:
        # Whoever initialises at the same moment was shown it.
        return None
    return made.text

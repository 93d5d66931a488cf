"""``browse``: sites, libraries and folders of an account, level by level."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import typer

from drivefeed.cli.context import EXIT_NOT_CLEAN, account_parts, run
from drivefeed.cli.output import escape, new_table, on_terminal, print_json, say
from drivefeed.cli.words import size_of
from drivefeed.domain.errors import NotFound
from drivefeed.domain.remote import ItemKind
from drivefeed.services.choosing import routes_for
from drivefeed.sources.graph import browse, unresolved
from drivefeed.sources.graph.addresses import parse_address
from drivefeed.sources.graph.looking import Refused
from drivefeed.sources.graph.permissions import opens
from drivefeed.sources.graph.places import NotAnAddress, SitePath, names_of
from drivefeed.sources.graph.resolve import item_below, library_of_user, own_library
from drivefeed.sources.graph.sites import site_by_path

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from drivefeed.domain.remote import RemoteItem
    from drivefeed.sources.graph.browse import Library, Site
    from drivefeed.sources.graph.looking import Look

_FOLDERS = frozenset({ItemKind.FOLDER, ItemKind.ROOT})


@dataclass(frozen=True, slots=True)
class Place:
    """Where to look; nothing set means the sites."""

    site: str | None = None
    library: str | None = None
    path: str = ""
    user: str | None = None
    me: bool = False
    search: str = ""

    @property
    def is_start(self) -> bool:
        """Whether nothing was said."""
        return self == Place()


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a listing.

    Attributes:
        kind: ``site``, ``library``, or the kind of a driveItem.
        size: bytes, of files.
    """

    kind: str
    name: str
    id: str
    url: str
    size: int | None = None


def run_browse(
    account: str | None, org: str | None, place: Place, limit: int, *, as_json: bool
) -> None:
    """List one level, or go from level to level on a terminal."""
    if place.is_start and not as_json and on_terminal() and sys.stdin.isatty():
        from drivefeed.cli.browser import browse_on_terminal

        browse_on_terminal(account, org)
        return
    name, found, is_more = run(_listed(account, org, place, limit))
    if as_json:
        print_json({"account": name, "entries": [asdict(one) for one in found], "more": is_more})
    elif found:
        say(f"[dim]Through the account '{escape(name)}':[/]")
        table = new_table("kind", "name", "size", "address", right=frozenset({"size"}))
        for one in found:
            size = size_of(one.size) if one.size is not None else ""
            table.add_row(one.kind, escape(one.name), size, escape(one.url))
        say(table)
        if is_more:
            say("[dim]There is more: --limit[/]")
    else:
        say("There is nothing here.")
    if not found:
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _listed(
    account: str | None, org: str | None, place: Place, limit: int
) -> tuple[str, list[Entry], bool]:
    async with account_parts() as parts:
        routes = await routes_for(parts.catalog, parts.accounts, account=account, org=org)
        look = await parts.source.look(routes[0].account_id)
        found: list[Entry] = []
        async for page in entries(look, place):
            found += page
            if len(found) > limit:
                break
    return look.account.name, found[:limit], len(found) > limit


async def entries(look: Look, place: Place) -> AsyncIterator[Sequence[Entry]]:
    """Yield the pages of a level.

    Raises:
        NotFound: there is no such site or library.
        NeedsAttention: the account may not look there; says what to do.
    """
    if place.me or place.user is not None:
        whole = await (library_of_user(look, place.user) if place.user else own_library(look))
        async for items in in_library(look, whole, place.path):
            yield items
    elif place.site is None:
        is_empty = True
        try:
            async for sites in browse.sites(look, place.search):
                is_empty = is_empty and not sites
                yield [of_site(one) for one in sites]
        except Refused as refused:
            raise unresolved.may_not_list_sites(look.account) from refused
        if is_empty and opens(await look.permissions() or frozenset()) == "selected":
            raise unresolved.may_not_list_sites(look.account)
    else:
        try:
            site = await site_named(look, place.site)
        except Refused as refused:
            raise await unresolved.not_shown(refused, place.site, look) from refused
        known = await libraries_of(look, site)
        if place.library is None:
            yield [of_library(one) for one in known]
            return
        async for items in in_library(look, _named(known, place.library), place.path):
            yield items


async def libraries_of(look: Look, site: Site) -> tuple[Library, ...]:
    """Return a site's libraries.

    Raises:
        NeedsAttention: the account may not look there; says what to do.
    """
    try:
        return await browse.libraries(look, site)
    except Refused as refused:
        raise await unresolved.not_shown(refused, site.web_url, look) from refused


async def in_library(look: Look, library: Library, path: str) -> AsyncIterator[Sequence[Entry]]:
    """Yield the pages of what lies in a folder of a library."""
    item_id = "root"
    if path.strip("/"):
        _, item = await item_below(look, library, names_of(path))
        item_id = item.item_id
    try:
        async for items in browse.children(look, library.drive_id, item_id):
            yield [of_item(one) for one in items]
    except Refused as refused:
        raise await unresolved.not_shown(refused, library.web_url, look) from refused


async def site_named(look: Look, named: str) -> Site:
    """Return a site by its address, id, or name.

    Raises:
        NotFound: there is none, or several have the name.
    """
    if named.count(",") == 2:  # noqa: PLR2004 (host, site collection and web)
        return await browse.site_by_id(look, named)
    try:
        address = parse_address(named)
    except NotAnAddress:
        address = None
    if isinstance(address, SitePath) and address.host:
        return await site_by_path(look, address.host, address.path)
    found: dict[str, Site] = {}
    try:
        async for page in browse.sites(look, named):
            found |= {one.site_id: one for one in page if one.name.casefold() == named.casefold()}
    except Refused as refused:
        raise unresolved.may_not_list_sites(look.account) from refused
    if len(found) == 1:
        return next(iter(found.values()))
    if not found:
        raise NotFound(f"There is no site '{named}' that this account can see. Try its address.")
    urls = ", ".join(one.web_url for one in found.values())
    raise NotFound(f"Several sites are called '{named}'; say one by its address: {urls}.")


def _named(known: Sequence[Library], named: str) -> Library:
    wanted = named.casefold().rstrip("/")
    for one in known:
        if wanted in {one.name.casefold(), one.web_url.casefold(), one.drive_id.casefold()}:
            return one
    names = ", ".join(f"'{one.name}'" for one in known) or "none"
    raise NotFound(f"There is no library '{named}' here. Known: {names}.")


def of_site(site: Site) -> Entry:
    """Return a site as a line."""
    return Entry("site", site.name, site.site_id, site.web_url)


def of_library(library: Library) -> Entry:
    """Return a library as a line."""
    return Entry("library", library.name, library.drive_id, library.web_url)


def of_item(item: RemoteItem) -> Entry:
    """Return a driveItem as a line."""
    facts: dict[str, Any] = {} if item.kind in _FOLDERS else {"size": item.size}
    return Entry(str(item.kind), item.name or "", item.item_id, item.web_url or "", **facts)

"""Which site and which library a path of SharePoint belongs to.

A path does not say where the site ends: ``/sites/Lab/Trials/Docs`` is a folder of the library
*Trials*, or the library *Docs* of a subsite. The libraries' own addresses decide, the longest one
that the path begins with; subsites are asked for only where no library fits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

from drivefeed.sources.graph import browse, unresolved
from drivefeed.sources.graph.looking import Look, Refused, text_of
from drivefeed.sources.graph.places import names_of
from drivefeed.sources.graph.sharepoint_urls import no_library

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drivefeed.sources.graph.browse import Library, Site
    from drivefeed.sources.graph.places import SitePath

_MISSING = frozenset({400, 404})
_DEEPEST_SUBSITE = 10


async def own_host(look: Look) -> str:
    """Return the host of the tenant's SharePoint: ``contoso.sharepoint.com``.

    Raises:
        Refused: the account may not look at the root site.
    """
    found = await look.ask(f"/sites/root?{browse.SITE_FIELDS}", "your root site")
    host = text_of(found, "siteCollection.hostname")
    host = (host or urlsplit(text_of(found, "webUrl")).hostname or "").lower()
    return ".".join(_tenant(host))


def hosts_agree(host: str, own: str) -> bool:
    """Whether two hosts are of one tenant: its own, and the one of everybody's OneDrive."""
    return _tenant(host) == _tenant(own)


def _tenant(host: str) -> tuple[str, str]:
    label, _, rest = host.lower().partition(".")
    return label.removesuffix("-my"), rest


async def find_library(look: Look, host: str, address: SitePath) -> tuple[Library, tuple[str, ...]]:
    """Return the library that a path leads into, and the names below the library.

    Raises:
        Refused: the site is not shown.
        NeedsAttention: there is no such library, or several could be meant.
    """
    names = address.site
    site = await site_by_path(look, host, names)
    while True:
        known = await browse.libraries(look, site)
        found = _longest(known, address.path)
        if found is not None:
            return found, address.path[len(_path_of(found)) :]
        if len(address.path) == len(names):
            return _only(site, known), ()
        below = address.path[len(names)]
        try:
            names = address.path[: len(names) + 1]
            if len(names) > len(address.site) + _DEEPEST_SUBSITE:
                raise unresolved.no_such_library(site, below, known)
            site = await site_by_path(look, host, names)
        except Refused as refused:
            if refused.status not in _MISSING:
                raise
            if below.casefold() == "lists":
                raise no_library(f"https://{host}/{quote('/'.join(address.path))}") from refused
            raise unresolved.no_such_library(site, below, known) from refused


async def site_by_path(look: Look, host: str, names: Sequence[str]) -> Site:
    """Return the site at a path.

    Raises:
        Refused: there is none, or it is not shown.
    """
    path = "/".join(quote(name, safe="") for name in names)
    place = f"{host}:/{path}" if path else host
    asked = f"the site 'https://{host}/{path}'"
    return browse.site_of(await look.ask(f"/sites/{place}?{browse.SITE_FIELDS}", asked))


def _only(site: Site, known: Sequence[Library]) -> Library:
    """Return the library that a site's own address means."""
    if not known:
        raise unresolved.no_libraries(site)
    if len(known) > 1:
        raise unresolved.which_library(site, known)
    return known[0]


def _longest(known: Sequence[Library], path: tuple[str, ...]) -> Library | None:
    wanted = tuple(name.casefold() for name in path)
    fitting = [
        one
        for one in known
        if (own := tuple(name.casefold() for name in _path_of(one))) and wanted[: len(own)] == own
    ]
    return max(fitting, key=lambda one: len(_path_of(one)), default=None)


def _path_of(library: Library) -> tuple[str, ...]:
    return names_of(unquote(urlsplit(library.web_url).path))

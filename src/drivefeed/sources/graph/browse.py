"""What an account can see: sites, libraries and folders; each listing to its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from drivefeed.sources.graph import wire
from drivefeed.sources.graph.items import item_of
from drivefeed.sources.graph.looking import Look, Refused, encoded, text_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.domain.remote import RemoteItem

SITE_FIELDS = "$select=id,name,displayName,webUrl,siteCollection"
DRIVE_FIELDS = "$select=id,name,driveType,webUrl"

ITEM_FIELDS = f"$select={','.join(wire.SELECT)}"

_CONTAINERS = "/contentstorage/"


@dataclass(frozen=True, slots=True)
class Site:
    """A SharePoint site; ``site_id`` is Graph's: host, site collection and web."""

    site_id: str
    name: str
    web_url: str


@dataclass(frozen=True, slots=True)
class Library:
    """A document library or a OneDrive.

    Attributes:
        drive_type: ``documentLibrary``, ``business`` or ``personal``.
        site: the site it belongs to, where that is known.
    """

    drive_id: str
    name: str
    drive_type: str
    web_url: str
    site: Site | None = None


async def sites(look: Look, words: str = "") -> AsyncIterator[tuple[Site, ...]]:
    """Yield pages of the sites whose name or address matches words; of all without any.

    Containers of SharePoint Embedded (Loop is one of its users) are listed as sites too, and are
    none: they are left out here, and can be connected by their address all the same.

    Raises:
        Refused: the account may not search; an app with ``Sites.Selected`` never may.
    """
    path = f"/sites?search={encoded(words.strip() or '*')}"
    async for page in look.pages(path, "the sites"):
        found = (site_of(one) for one in page if text_of(one, "id"))
        yield tuple(site for site in found if not _is_container(site))


async def followed_sites(look: Look) -> tuple[Site, ...]:
    """Return the sites that the person who signed in follows; none for an app."""
    if not look.account.is_delegated:
        return ()
    try:
        found = await look.listing("/me/followedSites", "the sites you follow")
    except Refused:
        # Personal accounts have none, and the search finds the same sites.
        return ()
    return tuple(site_of(one) for one in found if text_of(one, "id"))


async def site_by_id(look: Look, site_id: str) -> Site:
    """Return a site by Graph's id for it."""
    return site_of(await look.ask(f"/sites/{encoded(site_id)}?{SITE_FIELDS}", "the site"))


async def libraries(look: Look, site: Site) -> tuple[Library, ...]:
    """Return a site's document libraries; those that SharePoint hides are left out."""
    path = f"/sites/{encoded(site.site_id)}/drives?{DRIVE_FIELDS}"
    found = await look.listing(path, f"the libraries of the site '{site.name}'")
    return tuple(library_of(one, site) for one in found if text_of(one, "id"))


async def own_library(look: Look) -> Library:
    """Return the OneDrive of the person who signed in."""
    return library_of(await look.ask(f"/me/drive?{DRIVE_FIELDS}", "your OneDrive"))


async def library_of_user(look: Look, user: str) -> Library:
    """Return a person's OneDrive."""
    path = f"/users/{encoded(user)}/drive?{DRIVE_FIELDS}"
    return library_of(await look.ask(path, f"the OneDrive of {user}"))


async def library_by_id(look: Look, drive_id: str) -> Library:
    """Return a drive by its id."""
    path = f"/drives/{encoded(drive_id)}?{DRIVE_FIELDS}"
    return library_of(await look.ask(path, f"the drive {drive_id}"))


async def children(
    look: Look, drive_id: str, item_id: str = "root"
) -> AsyncIterator[tuple[RemoteItem, ...]]:
    """Yield pages of what lies in a folder, in Graph's order, each item once.

    Where an item comes twice, the order changed between two pages, and another item may have been
    passed over; so the folder is listed once more, for what was not shown yet.
    """
    seen: set[str] = set()
    for _ in range(2):
        is_whole = True
        async for page in _children(look, drive_id, item_id):
            fresh = tuple(item for item in page if item.item_id not in seen)
            is_whole = is_whole and len(fresh) == len(page)
            seen.update(item.item_id for item in fresh)
            yield fresh
        if is_whole:
            return


async def _children(
    look: Look, drive_id: str, item_id: str
) -> AsyncIterator[tuple[RemoteItem, ...]]:
    place = "root" if item_id == "root" else f"items/{encoded(item_id)}"
    path = f"/drives/{encoded(drive_id)}/{place}/children?{ITEM_FIELDS}"
    async for page in look.pages(path, "the contents of a folder"):
        items = (remote_of(one) for one in page)
        yield tuple(item for item in items if item is not None and not item.deleted)


def _is_container(site: Site) -> bool:
    return urlsplit(site.web_url).path.casefold().startswith(_CONTAINERS)


def site_of(found: dict[str, Any]) -> Site:
    """Read a site."""
    url = text_of(found, "webUrl")
    name = text_of(found, "displayName", "name") or url.rstrip("/").rpartition("/")[2]
    return Site(text_of(found, "id"), name, url)


def library_of(found: dict[str, Any], site: Site | None = None) -> Library:
    """Read a drive."""
    return Library(
        drive_id=text_of(found, "id"),
        name=text_of(found, "name") or "OneDrive",
        drive_type=text_of(found, "driveType"),
        web_url=text_of(found, "webUrl"),
        site=site,
    )


def remote_of(found: dict[str, Any]) -> RemoteItem | None:
    """Read a driveItem; None where it has no id."""
    return item_of(msgspec.json.encode(found))

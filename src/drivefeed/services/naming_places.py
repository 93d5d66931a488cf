"""From a place as a file declares it to a folder by ids, through an account that may read it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from drivefeed.domain.errors import DrivefeedError, NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.services.choosing import routes_for
from drivefeed.services.plan import Planning
from drivefeed.sources.graph import browse
from drivefeed.sources.graph.addresses import parse_address
from drivefeed.sources.graph.places import DrivePath, SitePath, names_of
from drivefeed.sources.graph.resolve import resolve
from drivefeed.sources.graph.sites import own_host, site_by_path

if TYPE_CHECKING:
    from drivefeed.catalog.routes import Route
    from drivefeed.domain.declared import Entry
    from drivefeed.sources.graph.folders import ResolvedFolder
    from drivefeed.sources.graph.looking import Look
    from drivefeed.sources.graph.places import Address
    from drivefeed.sources.graph.source import GraphSource
    from drivefeed.stages.backends import Backends


class Places(Planning, Protocol):
    """The open parts that are needed to look for places."""

    @property
    def source(self) -> GraphSource:
        """The source that can look for places."""
        ...

    @property
    def backends(self) -> Backends:
        """The ingestion backends that a policy may name."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """A folder, and the account through which it was found."""

    folder: ResolvedFolder
    route: Route


async def find_place(parts: Places, entry: Entry) -> Found:
    """Find the folder of an entry through the first of its accounts that may read it.

    Raises:
        NeedsAttention: there is no such account or no such folder, or it may not be read.
        DrivefeedError: Microsoft Graph could not be asked.
    """
    routes = await routes_for(parts.catalog, parts.accounts, account=entry.account, org=entry.org)
    last: DrivefeedError | None = None
    for route in routes:
        look = await parts.source.look(route.account_id)
        try:
            return Found(await resolve(look, await _address_of(look, entry)), route)
        except DrivefeedError as error:
            last = last or error
    assert last is not None
    raise last


def unreadable_address(entry: Entry) -> list[str]:
    """Return what is wrong with the address that an entry is named by; nobody is asked."""
    try:
        if entry.url is not None:
            parse_address(entry.url)
        elif entry.site is not None:
            _site_of(entry)
    except DrivefeedError as error:
        return [str(error)]
    return []


async def _address_of(look: Look, entry: Entry) -> Address:
    folder = names_of(entry.folder)
    if entry.url is not None:
        return parse_address(entry.url)
    if entry.drive_id is not None:
        return DrivePath(entry.drive_id, path=folder)
    return DrivePath(await _library(look, entry), path=folder)


async def _library(look: Look, entry: Entry) -> str:
    """Return the drive id of the library that an entry names by its site and its title."""
    address = _site_of(entry)
    site = await site_by_path(look, address.host or await own_host(look), address.path)
    known = await browse.libraries(look, site)
    wanted = (entry.library or "").casefold()
    for one in known:
        if wanted in {one.name.casefold(), one.web_url.rpartition("/")[2].casefold()}:
            return one.drive_id
    names = ", ".join(f"'{one.name}'" for one in known) or "none"
    raise NeedsAttention(
        f"Site '{site.name}' has no library '{entry.library}'; it has {names}.",
        reason=Reason.FOLDER_GONE,
    )


def _site_of(entry: Entry) -> SitePath:
    address = parse_address(entry.site or "")
    if isinstance(address, SitePath):
        return address
    raise NeedsAttention(
        f"site is '{entry.site}'; allowed: the address of a SharePoint site, such as "
        "https://contoso.sharepoint.com/sites/Legal.",
        reason=Reason.MISCONFIGURED,
    )

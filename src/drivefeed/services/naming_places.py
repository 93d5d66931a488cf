"""From a place as a file declares it to a folder by ids, through an account that may read it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

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
    from collections.abc import Iterator, Sequence

    from drivefeed.catalog.routes import Route
    from drivefeed.domain.declared import Entry, Problem
    from drivefeed.sources.graph.browse import Library, Site
    from drivefeed.sources.graph.folders import ResolvedFolder
    from drivefeed.sources.graph.looking import Look
    from drivefeed.sources.graph.source import GraphSource
    from drivefeed.stages.backends import Backends

_OF_A_FOLDER: Final = frozenset(
    {
        *(Reason.FOLDER_GONE, Reason.PACKAGE, Reason.SHORTCUT, Reason.UNKNOWN_KIND),
        Reason.MISCONFIGURED,  # it is a file
    }
)
"""What can be wrong below a drive that was found."""


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


class _Wrong(Exception):
    """A value of an entry is wrong: one of ``keys``, of which the first that is given counts."""

    def __init__(self, error: DrivefeedError, *keys: str) -> None:
        super().__init__(str(error))
        self.keys = keys


@contextmanager
def _because_of(*keys: str) -> Iterator[None]:
    try:
        yield
    except DrivefeedError as error:
        raise _Wrong(error, *keys) from error


async def find_place(parts: Places, entry: Entry) -> Found | list[Problem]:
    """Find the folder of an entry through the first of its accounts that may read it.

    Returns:
        It, or what is wrong with the entry, each at the value that is: there is no such account or
        no such folder, it may not be read, or Microsoft Graph could not be asked.
    """
    wrong: list[_Wrong] = []
    try:
        _check_address(entry)
    except _Wrong as error:
        # Whichever account is asked, and also where there is none to ask.
        wrong.append(error)
    try:
        with _because_of("account", "org"):
            routes = await routes_for(
                parts.catalog, parts.accounts, account=entry.account, org=entry.org
            )
        if not wrong:
            return await _find(parts, entry, routes)
    except _Wrong as error:
        wrong.append(error)
    return [entry.problem(str(error), *error.keys) for error in wrong]


async def _find(parts: Places, entry: Entry, routes: Sequence[Route]) -> Found:
    first: _Wrong | None = None
    for route in routes:
        try:
            with _because_of("account"):
                look = await parts.source.look(route.account_id)
            return Found(await _folder_of(look, entry), route)
        except _Wrong as error:
            first = first or error
    assert first is not None
    raise first


def _check_address(entry: Entry) -> None:
    if entry.url is not None:
        with _because_of("url"):
            parse_address(entry.url)
    elif entry.site is not None:
        with _because_of("site"):
            _site_of(entry)


async def _folder_of(look: Look, entry: Entry) -> ResolvedFolder:
    if entry.url is not None:
        with _because_of("url"):
            return await resolve(look, parse_address(entry.url))
    drive_id = entry.drive_id or await _library(look, entry)
    try:
        return await resolve(look, DrivePath(drive_id, path=names_of(entry.folder)))
    except NeedsAttention as error:
        below = ("folder",) if error.reason in _OF_A_FOLDER else ()
        raise _Wrong(error, *below, "drive_id", "library") from error
    except DrivefeedError as error:
        raise _Wrong(error, "drive_id", "library") from error


async def _library(look: Look, entry: Entry) -> str:
    """Return the drive id of the library that an entry names by its site and its title."""
    with _because_of("site"):
        address = _site_of(entry)
        site = await site_by_path(look, address.host or await own_host(look), address.path)
        known = await browse.libraries(look, site)
    with _because_of("library"):
        return _among(known, site, entry)


def _among(known: Sequence[Library], site: Site, entry: Entry) -> str:
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

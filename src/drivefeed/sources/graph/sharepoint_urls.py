"""Addresses of SharePoint and of OneDrive for work: ``https://contoso.sharepoint.com/…``.

Which forms there are was taken from what the web pages, the *Copy link* and *Share* buttons, the
sync app and Teams put into the clipboard; only the way in which Graph addresses a share is
documented, so a form that is not known here is handed to Graph as a share.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote, urlsplit

from drivefeed.sources.graph.places import (
    Address,
    NotAnAddress,
    OwnDrive,
    SharingLink,
    SitePath,
    cloud_of,
    is_managed,
    names_of,
    walked,
)

if TYPE_CHECKING:
    from urllib.parse import SplitResult

_LINK = re.compile(r":(?P<kind>[a-z]{1,2}):", re.IGNORECASE)
_LIST_KINDS = frozenset({"l", "li"})
_DIRECT = "r"
"""In ``/:f:/r/…`` the path follows; other letters are followed by a token."""
_OF_A_SITE = frozenset({"s", "t", "p"})
"""Letters after which the name of the site or the person comes first."""
_PLACE_OPTIONS = ("id", "rootfolder")
_DOCUMENT_PAGES = frozenset(
    {"doc.aspx", "wopiframe.aspx", "wopiframe2.aspx", "guestaccess.aspx", "embed.aspx"}
)


def read_sharepoint(url: SplitResult, text: str) -> Address:
    """Read an address on a host of SharePoint Online.

    Args:
        url: the address, split.
        text: the address as it was pasted, for Graph where only it can tell.

    Raises:
        NotAnAddress: it is no place in a library.
    """
    host = (url.hostname or "").lower()
    cloud = cloud_of(host)
    tenant = host.split(".", 1)[0]
    if tenant.endswith("-admin"):
        raise NotAnAddress(
            f"'{host}' is the SharePoint admin centre, which holds no files. Open the site itself, "
            "go to the folder and copy the address from there."
        )
    options = options_of(url.query)
    names = names_of_url(url)
    link = _LINK.fullmatch(names[0]) if names else None
    if link:
        if link["kind"].casefold() in _LIST_KINDS:
            raise no_library(text)
        if len(names) < 2 or names[1].casefold() != _DIRECT:  # noqa: PLR2004 (the letter)
            return _shared(text, host, names)
        names = names[2:]
    if names and names[-1].casefold() in _DOCUMENT_PAGES:
        return SharingLink(text, host, cloud)
    named = next((options[one] for one in _PLACE_OPTIONS if options.get(one)), None)
    return _place(host, names, named, options)


def _shared(text: str, host: str, names: tuple[str, ...]) -> SharingLink:
    letter = names[1].casefold() if len(names) > 1 else ""
    whose = 2 if letter == "g" and is_managed(names[2:]) else 1 if letter in _OF_A_SITE else 0
    if len(names) < 3 + whose:
        raise NotAnAddress(
            f"The sharing link '{text}' is cut off: the part that names what was shared is "
            "missing. Copy the whole link again."
        )
    return SharingLink(text, host, cloud_of(host))


def _place(
    host: str, names: tuple[str, ...], named: str | None, options: dict[str, str]
) -> Address:
    """Return the place of a page: what its options name, else what its own path names."""
    library = options.get("listurl", "")
    if library.casefold().startswith(("http://", "https://")):
        # OneDrive's own page shows libraries of sites on another host.
        there = (_split(library).hostname or "").lower()
        if cloud_of(there) != cloud_of(host):
            raise NotAnAddress(
                f"The address names a library on '{there}', which is not a host of SharePoint "
                "Online. Open the folder there and copy its address."
            )
        host = there
        named = named or unquote(_split(library).path)
    elif library and not named:
        named = library
    if named is not None:
        whole = _split(named)
        if whole.scheme in {"http", "https"} and cloud_of((whole.hostname or "").lower()):
            named = unquote(whole.path)
        path = names_of(named)
        if path and not named.startswith("/"):
            path = without_pages(names) + path
        return SitePath(host, path, cloud_of(host))
    path = without_pages(names)
    if host.split(".", 1)[0].endswith("-my") and not is_managed(path):
        # Its start page shows everybody their own OneDrive.
        return OwnDrive((), cloud_of(host))
    return SitePath(host, path, cloud_of(host))


def without_pages(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return a path up to where SharePoint's own pages begin: views, site pages, settings."""
    for place, name in enumerate(names):
        folded = name.casefold()
        if folded in {"_layouts", "_api", "sitepages", "_vti_bin"}:
            return names[:place]
        if folded == "forms" and place + 1 < len(names) and _is_page(names[place + 1]):
            return names[:place]
    if names and _is_page(names[-1]):
        return names[:-1]
    return names


def _is_page(name: str) -> bool:
    return name.casefold().endswith(".aspx")


def options_of(query: str) -> dict[str, str]:
    """Return a query's options by lower-case name, the first of each, decoded."""
    found: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True, errors="replace"):
        found.setdefault(name.casefold(), value.strip())
    return found


def names_of_url(url: SplitResult) -> tuple[str, ...]:
    """Return the decoded names of a URL's path.

    Addresses typed by hand hold ``#`` as it is. What follows one is part of a name, unless it
    looks like options of a page; so another folder is never taken for the one that was meant.
    """
    raw = url.path
    fragment = url.fragment
    if fragment.startswith("/") and raw.casefold().endswith("/start.aspx"):
        # An old way to show a page inside of another one.
        raw = f"{raw[: raw.casefold().rfind('/_layouts')]}{fragment}".split("?", 1)[0]
    elif fragment and "=" not in fragment and not url.query:
        raw = f"{raw}%23{fragment}"
    return walked(unquote(part, errors="replace").strip() for part in raw.split("/"))


def no_library(text: str) -> NotAnAddress:
    """Return the error for a list that is no document library."""
    return NotAnAddress(
        f"'{text}' is a list and holds no files. Open the site's document library (usually "
        "'Documents') and copy the address of the folder there."
    )


def _split(text: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError:
        return urlsplit("")

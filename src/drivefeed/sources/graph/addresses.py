"""Any address that people paste, read without asking anybody.

``parse_address`` is total: every text gives an :data:`Address` or a sentence that says what it is
and what to paste instead.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from drivefeed.sources.graph.consumer_urls import read_consumer
from drivefeed.sources.graph.places import (
    CONSUMER_HOSTS,
    Address,
    DrivePath,
    NotAnAddress,
    OwnDrive,
    SitePath,
    UserDrive,
    cloud_of,
    is_managed,
    names_of,
)
from drivefeed.sources.graph.sharepoint_urls import names_of_url, options_of, read_sharepoint

if TYPE_CHECKING:
    from urllib.parse import SplitResult

LONGEST = 8192
"""Characters; a path of SharePoint Online has at most 400, tokens and options come on top."""

_PAIRS = ("''", "``", "()", "[]", "\u201c\u201d", "\u2018\u2019", "\u201e\u201c", "\u00ab\u00bb")
_NEVER_IN_NAMES = '<>"'
_INVISIBLE = dict.fromkeys([*range(32), 127, 0x200B, 0x200C, 0x200D, 0x2060, 0xFEFF, 0xAD])
_SCHEME = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*):(?=//)", re.IGNORECASE)
_HOST = re.compile(r"(?:[a-z0-9-]+\.)+[a-z]{2,}(?::\d+)?(?=[/?#]|$)", re.IGNORECASE)
_LOCAL = re.compile(r"(?:[a-z]:[\\/]|\\\\|~[/\\]|\.{1,2}[/\\])", re.IGNORECASE)
_PERSON = re.compile(r"(?P<user>[^\s/:@]+@[^\s/:@]+\.[^\s/:@]+)(?::/*(?P<path>.*))?", re.DOTALL)
_DRIVE = re.compile(
    r"(?P<drive>b![\w-]{10,}|[0-9a-f]{12,16})(?::/*(?P<path>.*))?", re.DOTALL | re.IGNORECASE
)
_OWN = re.compile(r"me(?::/*|/+|$)(?P<path>.*)", re.DOTALL | re.IGNORECASE)
_GRAPH_HOSTS = frozenset(
    {
        "graph.microsoft.com",
        "graph.microsoft.us",
        "dod-graph.microsoft.us",
        "microsoftgraph.chinacloudapi.cn",
    }
)
_GRAPH_ITEM = re.compile(
    r"/(?:v1\.0|beta)/drives/(?P<drive>[^/]+)"
    r"(?:/(?:root|items/(?P<item>[^/:]+))(?::/(?P<path>[^:]*):?)?)?/?",
    re.IGNORECASE,
)
_TEAMS_HOSTS = frozenset(
    {
        "teams.microsoft.com",
        "teams.live.com",
        "teams.cloud.microsoft",
        "gov.teams.microsoft.us",
        "dod.teams.microsoft.us",
    }
)
_OTHERS = {
    "drive.google.com": "Google Drive",
    "docs.google.com": "Google Drive",
    "dropbox.com": "Dropbox",
    "box.com": "Box",
    "icloud.com": "iCloud",
}


def parse_address(text: str) -> Address:
    """Read an address: a URL of OneDrive, SharePoint or Teams, or one of the short forms.

    The short forms are ``me:/Folder`` and ``/Folder`` (the OneDrive of whoever signed in),
    ``ana@contoso.com:/Folder`` (somebody's OneDrive), ``/sites/Lab/Library/Folder`` (a site of the
    account's tenant) and ``DRIVE-ID:/Folder``.

    Raises:
        NotAnAddress: it names no folder; the sentence says what it seems to be, and what to do.
    """
    clean = cleaned(text)
    if not clean:
        raise NotAnAddress(
            "The address is empty. Open the folder in the browser and copy what the address bar "
            "shows."
        )
    if len(clean) > LONGEST:
        raise NotAnAddress(
            f"The address has {len(clean)} characters, more than any folder's. Copy it again from "
            "the address bar."
        )
    if _LOCAL.match(clean) or clean.casefold().startswith("file:"):
        raise NotAnAddress(
            f"'{_short(clean)}' is a folder of a computer. Right-click it there and choose "
            "'View online', then copy the address from the browser."
        )
    scheme = _SCHEME.match(clean)
    if scheme and scheme["scheme"].casefold() not in {"http", "https"}:
        raise NotAnAddress(
            f"'{_short(clean)}' begins with '{scheme['scheme']}:', which no folder of OneDrive or "
            "SharePoint does. Copy its address from the browser; it begins with 'https://'."
        )
    if not scheme and not _HOST.match(clean):
        return _short_form(clean)
    try:
        url = urlsplit(clean if scheme else f"https://{clean}")
        host = (url.hostname or "").lower().rstrip(".")
        url = url._replace(netloc=host)
    except ValueError:
        host = ""
    if not host:
        raise NotAnAddress(
            f"'{_short(clean)}' is not a complete address. Open the folder in the browser and copy "
            "what the address bar shows."
        )
    return _by_host(host, url, clean if scheme else f"https://{clean}")


def cleaned(text: str) -> str:
    """Take off what copying adds: spaces, quotes, brackets, line breaks, invisible characters."""
    sound = text.encode("utf-8", "replace").decode("utf-8")
    clean = sound.translate(_INVISIBLE).strip()
    before = ""
    while clean != before:
        before = clean
        clean = clean.strip(_NEVER_IN_NAMES).strip()
        if len(clean) > 1 and clean[0] + clean[-1] in _PAIRS:
            clean = clean[1:-1].strip()
    return clean


def _by_host(host: str, url: SplitResult, text: str) -> Address:
    if cloud_of(host):
        return read_sharepoint(url, text)
    if host in CONSUMER_HOSTS:
        return read_consumer(url, text)
    if host in _TEAMS_HOSTS:
        return _teams(url, text)
    if host in _GRAPH_HOSTS:
        return _graph(url, text)
    for ending, service in _OTHERS.items():
        if host == ending or host.endswith(f".{ending}"):
            raise NotAnAddress(
                f"'{host}' is {service}. drivefeed reads OneDrive and SharePoint Online; paste the "
                "address of a folder there."
            )
    raise NotAnAddress(
        f"'{host}' is not a host of OneDrive or SharePoint Online (a server of your own cannot be "
        "read). Open the folder in the browser and copy what the address bar shows: it begins "
        "with 'https://', the name of the organization and '.sharepoint.com', or with "
        "'https://onedrive.live.com'."
    )


def _teams(url: SplitResult, text: str) -> Address:
    """Read a link of Teams; of them, the link to a file names its place in SharePoint.

    Source: "Deep link to a file in a channel" on Microsoft Learn (``objectUrl``). The address of
    a channel's *Files* tab has ``rootfolder`` in the classic web client only.
    """
    options = options_of(url.query) | options_of(url.fragment.partition("?")[2])
    target = options.get("objecturl", "")
    if target and cloud_of(_host(target)):
        return parse_address(target)
    folder = unquote(options.get("rootfolder", ""))
    if is_managed(names_of(folder)):
        return SitePath("", names_of(folder), None)
    raise NotAnAddress(
        f"'{_short(text)}' opens Teams and does not say where the files are. In the channel's "
        "'Files' (or 'Shared') tab choose 'Open in SharePoint', and copy that address."
    )


def _graph(url: SplitResult, text: str) -> DrivePath:
    found = _GRAPH_ITEM.fullmatch(url.path)
    if found is None:
        raise NotAnAddress(
            f"'{_short(text)}' is a request to Microsoft Graph that names no folder of a drive. "
            "Copy the folder's address from the browser instead."
        )
    path = names_of(unquote(found["path"] or "", errors="replace"))
    item = unquote(found["item"]) if found["item"] else None
    return DrivePath(unquote(found["drive"]), item, path)


def _short_form(text: str) -> Address:
    if found := _PERSON.fullmatch(text):
        return UserDrive(found["user"], names_of(found["path"] or ""))
    if found := _OWN.fullmatch(text):
        return OwnDrive(names_of(found["path"]))
    if found := _DRIVE.fullmatch(text):
        return DrivePath(found["drive"], path=names_of(found["path"] or ""))
    if text.startswith("/"):
        names = names_of_url(urlsplit(text)) if "%" in text else names_of(text)
        return SitePath("", names, None) if is_managed(names) else OwnDrive(names)
    raise NotAnAddress(
        f"'{_short(text)}' is not an address. Paste the folder's address from the browser, or "
        "write 'me:/Folder', 'somebody@your-domain:/Folder' or '/sites/Name/Library/Folder'."
    )


def _host(text: str) -> str:
    try:
        return (urlsplit(text).hostname or "").lower()
    except ValueError:
        return ""


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:119]}…"  # noqa: PLR2004 (a line and a half)

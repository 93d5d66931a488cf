"""Addresses of the personal OneDrive: ``onedrive.live.com``, ``1drv.ms``, ``d.docs.live.net``.

A personal item id is the drive's id, ``!``, and a number or, since the accounts were moved to
SharePoint in 2025, ``s`` and a GUID; so the id itself names the drive it lies in, which may be
somebody else's while ``cid`` is that of the person who looks at it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from drivefeed.sources.graph.places import (
    CONSUMERS,
    Address,
    DrivePath,
    NotAnAddress,
    OwnDrive,
    SharingLink,
    names_of,
)
from drivefeed.sources.graph.sharepoint_urls import names_of_url, options_of

if TYPE_CHECKING:
    from urllib.parse import SplitResult

_SHORT = frozenset({"1drv.ms", "www.1drv.ms", "1drv.com"})
_DRIVE = re.compile(r"[0-9a-f]{1,16}", re.IGNORECASE)
_ITEM = re.compile(r"(?P<drive>[0-9a-f]{1,16})!(?:\d+|s[0-9a-f]{32})", re.IGNORECASE)
_REDEEMED = ("authkey", "redeem")
"""Options of a link that was shared: without them, Microsoft refuses."""


def read_consumer(url: SplitResult, text: str) -> Address:
    """Read an address of the personal OneDrive.

    Args:
        url: the address, split.
        text: the address as it was pasted, for Graph where only it can tell.

    Raises:
        NotAnAddress: it names no folder.
    """
    host = (url.hostname or "").lower()
    names = names_of_url(url)
    if host in _SHORT:
        if not names:
            raise NotAnAddress(
                f"The short link '{text}' is cut off: what was shared is missing. Copy the whole "
                "link again."
            )
        return SharingLink(text, host, CONSUMERS)
    if host == "d.docs.live.net":
        return _drive_path(names, text)
    # Older pages kept their options behind the '#'.
    options = options_of(url.fragment) | options_of(url.query)
    if names and re.fullmatch(r":[a-z]{1,2}:", names[0], re.IGNORECASE):
        return SharingLink(text, host, CONSUMERS)
    if any(options.get(one) for one in _REDEEMED):
        return SharingLink(text, host, CONSUMERS)
    return _by_options(options, text)


def _by_options(options: dict[str, str], text: str) -> Address:
    named = options.get("id") or options.get("resid") or ""
    cid = options.get("cid", "")
    if named.startswith("/"):
        path = names_of(named)
        if path[:1] == ("personal",):
            path = path[1:]
        # The library is 'Documents' in every account, whatever the page calls it.
        return _drive_path(path[:1] + path[2:], text)
    if found := _ITEM.fullmatch(named):
        return DrivePath(found["drive"], named, cloud=CONSUMERS)
    if named and named.casefold() != "root":
        raise NotAnAddress(
            f"'{text}' shows a page of OneDrive and not one folder. Open the folder and copy the "
            "address from there."
        )
    if cid:
        return _drive_path((cid,), text)
    return OwnDrive((), CONSUMERS)


def _drive_path(names: tuple[str, ...], text: str) -> DrivePath:
    if not names or not _DRIVE.fullmatch(names[0]):
        raise NotAnAddress(
            f"'{text}' does not say whose OneDrive it is. Open the folder at onedrive.live.com and "
            "copy the address from there."
        )
    return DrivePath(names[0], path=names[1:], cloud=CONSUMERS)

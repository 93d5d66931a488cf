"""From an address to the ids of a folder, by asking Graph through one account.

Paths are asked for once, here; a connection follows ids. Everything that is no folder which the
account may read ends in a sentence of :mod:`.unresolved`.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from drivefeed.domain.errors import NeedsAttention, NotFound
from drivefeed.domain.remote import ItemKind
from drivefeed.sources.graph import browse, unresolved
from drivefeed.sources.graph.folders import ResolvedFolder, shown
from drivefeed.sources.graph.looking import Look, Refused, encoded, text_of
from drivefeed.sources.graph.places import (
    CONSUMERS,
    LOOK_ALIKE,
    Address,
    DrivePath,
    OwnDrive,
    SharingLink,
    SitePath,
    UserDrive,
)
from drivefeed.sources.graph.sites import find_library, hosts_agree, own_host

if TYPE_CHECKING:
    from drivefeed.domain.remote import RemoteItem
    from drivefeed.sources.graph.browse import Library, Site

_LOCKED = 423
_FORBIDDEN = 403


async def resolve(look: Look, address: Address) -> ResolvedFolder:
    """Find the folder that an address names.

    Raises:
        NeedsAttention: there is none, or none that this account may read; says what to do.
        DrivefeedError: Microsoft Graph could not be asked.
    """
    _check_cloud(look, address)
    match address:
        case SitePath():
            return await _in_site(look, address)
        case SharingLink():
            return await _shared(look, address)
        case DrivePath():
            return await _in_drive(look, address)
        case OwnDrive():
            return await _below(look, await own_library(look), address.path)
        case UserDrive():
            return await _below(look, await library_of_user(look, address.user), address.path)


def _check_cloud(look: Look, address: Address) -> None:
    account, cloud = look.account, address.cloud
    if cloud is None or cloud == LOOK_ALIKE:
        return
    if cloud == CONSUMERS:
        if account.is_of_organization:
            raise unresolved.personal_address(account)
    elif account.is_personal:
        raise unresolved.work_address(account)
    elif cloud != account.cloud:
        raise unresolved.other_cloud(cloud, account)


async def _in_site(look: Look, address: SitePath) -> ResolvedFolder:
    host = address.host or await own_host(look)
    if not address.host and address.is_personal:
        label, _, rest = host.partition(".")
        host = f"{label}-my.{rest}"
    if address.is_personal and look.account.is_delegated:
        # People may read their own OneDrive without the right to ask for sites.
        own = await _in_own_library(look, address, host)
        if own is not None:
            return await _below(look, *own)
    try:
        library, names = await find_library(look, host, address)
    except Refused as refused:
        return await _by_web_url(look, address, host, refused)
    return await _below(look, library, names)


async def _in_own_library(
    look: Look, address: SitePath, host: str
) -> tuple[Library, tuple[str, ...]] | None:
    """Return the person's own OneDrive, and the path in it, if the address lies in there."""
    try:
        library = await browse.own_library(look)
    except Refused:
        return None
    place = urlsplit(library.web_url)
    root = [unquote(name).casefold() for name in place.path.split("/") if name]
    names = [name.casefold() for name in address.path]
    if (place.hostname or "").casefold() != host.casefold() or names[: len(root)] != root:
        return None
    return library, address.path[len(root) :]


async def _by_web_url(look: Look, address: SitePath, host: str, refused: Refused) -> ResolvedFolder:
    """Ask for the place as a share; an app with ``Files.Read.All`` may not ask for sites.

    Raises:
        NeedsAttention: it is not shown in this way either; says why by the first refusal.
    """
    url = f"https://{host}/{quote('/'.join(address.path))}"
    if refused.status == _FORBIDDEN and len(address.path) > len(address.site):
        try:
            return await _found(look, await look.ask(_share_of(url), "the folder"))
        except Refused as second:
            refused = second if second.status == _LOCKED else refused
    if refused.status == _LOCKED:
        raise unresolved.locked(f"'{url}'") from refused
    own = await _own_host_if_told(look)
    if own is not None and not hosts_agree(host, own):
        raise unresolved.other_tenant(host, own, look.account) from refused
    if refused.status != _FORBIDDEN:
        raise unresolved.no_site(f"https://{host}/{quote('/'.join(address.site))}") from refused
    if address.is_personal:
        raise unresolved.someone_elses(url, look.account) from refused
    raise await unresolved.not_shown(refused, url, look) from refused


async def _own_host_if_told(look: Look) -> str | None:
    try:
        return await own_host(look)
    except (Refused, NotFound, NeedsAttention):
        return None


async def _shared(look: Look, link: SharingLink) -> ResolvedFolder:
    try:
        # The right to read lasts for this request; an app's own rights decide about the rest.
        found = await look.ask(
            _share_of(link.url), "the shared folder", Prefer="redeemSharingLinkIfNecessary"
        )
    except Refused as refused:
        if refused.status == _LOCKED:
            raise unresolved.locked("The site of the shared folder") from refused
        own = None if link.cloud == CONSUMERS else await _own_host_if_told(look)
        if own is not None and not hosts_agree(link.host, own):
            raise unresolved.other_tenant(link.host, own, look.account) from refused
        raise unresolved.dead_link(look.account) from refused
    try:
        return await _found(look, found)
    except Refused as refused:
        raise unresolved.only_the_link(text_of(found, "name"), look.account) from refused


def _share_of(url: str) -> str:
    """Return the address of what a URL shares.

    Source: "Access shared items" of the Graph reference: base64url without padding after ``u!``.
    """
    token = base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")
    return f"/shares/u!{token}/driveItem?{browse.ITEM_FIELDS}"


async def _in_drive(look: Look, address: DrivePath) -> ResolvedFolder:
    try:
        library = await browse.library_by_id(look, address.drive_id)
    except Refused as refused:
        if refused.status == _LOCKED:
            raise unresolved.locked(f"The drive {address.drive_id}") from refused
        if refused.status == _FORBIDDEN and address.cloud == CONSUMERS:
            raise unresolved.someone_elses(address.drive_id, look.account) from refused
        raise unresolved.no_drive(address.drive_id) from refused
    return await _below(look, library, address.path, address.item_id)


async def own_library(look: Look) -> Library:
    """Return the OneDrive of the person who signed in.

    Raises:
        NeedsAttention: nobody did, or the person has none.
    """
    if not look.account.is_delegated:
        raise unresolved.app_has_none(look.account)
    try:
        return await browse.own_library(look)
    except Refused as refused:
        raise unresolved.no_onedrive("The person who signed in") from refused


async def library_of_user(look: Look, user: str) -> Library:
    """Return a person's OneDrive.

    Raises:
        NeedsAttention: the person has none, or the account may not read it.
    """
    try:
        return await browse.library_of_user(look, user)
    except Refused as refused:
        if refused.status == _LOCKED:
            raise unresolved.locked(f"The OneDrive of {user}") from refused
        if refused.status == _FORBIDDEN:
            raise unresolved.user_not_permitted(user, look.account) from refused
        raise unresolved.no_onedrive(f"'{user}'") from refused


async def _found(look: Look, found: dict[str, Any]) -> ResolvedFolder:
    """Take what a share named.

    Raises:
        Refused: the account may read the item, but not the drive whose changes would be followed.
    """
    item = browse.remote_of(found)
    drive_id = text_of(found, "parentReference.driveId")
    if item is None or not drive_id:
        raise unresolved.is_no_folder(text_of(found, "name") or "What the link names")
    library = await browse.library_by_id(look, drive_id)
    site = await _site_of(look, text_of(found, "parentReference.siteId"))
    return await shown(look, library, item, found, site)


async def _site_of(look: Look, site_id: str) -> Site | None:
    if not site_id:
        return None
    try:
        return await browse.site_by_id(look, site_id)
    except Refused:
        return None


async def _below(
    look: Look, library: Library, path: tuple[str, ...], item_id: str | None = None
) -> ResolvedFolder:
    found, item = await item_below(look, library, path, item_id)
    return await shown(look, library, item, found, library.site)


async def item_below(
    look: Look, library: Library, path: tuple[str, ...], item_id: str | None = None
) -> tuple[dict[str, Any], RemoteItem]:
    """Find an item by its path below a drive's root, or below another item.

    Raises:
        NeedsAttention: there is none; says how far the path leads.
    """
    if look.account.cloud == "china" or any("%" in name for name in path):
        # Graph decodes '%' in paths twice (onedrive-api-docs#1455); China knows no paths.
        item_id, path = await _walked(look, library, path, item_id), ()
    start = f"/drives/{encoded(library.drive_id)}/" + (
        f"items/{encoded(item_id)}" if item_id else "root"
    )
    for length in range(len(path), -1, -1):
        names = "/".join(quote(name, safe="") for name in path[:length])
        url = f"{start}:/{names}:" if names else start
        try:
            found = await look.ask(f"{url}?{browse.ITEM_FIELDS}", "the folder")
        except Refused as refused:
            if refused.status in {_LOCKED, _FORBIDDEN}:
                raise await unresolved.not_shown(refused, library.web_url, look) from refused
            continue
        item = browse.remote_of(found)
        if length < len(path):
            if item is not None and item.kind is ItemKind.SHORTCUT:
                target = text_of(found, "remoteItem.webUrl")
                raise unresolved.is_a_shortcut(path[length - 1], target)
            raise unresolved.no_folder(library, path[:length], path[length])
        if item is not None:
            return found, item
    raise unresolved.no_folder(library, (), path[0] if path else item_id or "root")


async def _walked(
    look: Look, library: Library, path: tuple[str, ...], item_id: str | None
) -> str | None:
    """Follow names through the listings of folders; return the id of the last."""
    for place, name in enumerate(path):
        wanted, here = name.casefold(), item_id or "root"
        item_id = None
        async for page in browse.children(look, library.drive_id, here):
            item_id = next(
                (one.item_id for one in page if (one.name or "").casefold() == wanted), None
            )
            if item_id is not None:
                break
        if item_id is None:
            raise unresolved.no_folder(library, path[:place], name)
    return item_id

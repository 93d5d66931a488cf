"""Folders as they are shown back: with their place, by ids and by names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import ItemKind
from drivefeed.sources.graph import browse, unresolved
from drivefeed.sources.graph.looking import Look, encoded, text_of

if TYPE_CHECKING:
    from drivefeed.domain.remote import RemoteItem
    from drivefeed.sources.graph.browse import Library, Site

_DEEPEST = 400
"""Folders; the paths of SharePoint have no more characters."""


@dataclass(frozen=True, slots=True)
class ResolvedFolder:
    """A folder that was found, as it is shown back to whoever asked.

    Attributes:
        site_name: None where it lies in no site that the account may look at.
        drive_type: ``documentLibrary``, ``business`` or ``personal``.
        root_id: the id of the drive's root.
        item_id: the folder's id; ``root_id`` for the whole library.
        path: its names below the root, as Microsoft spells them; empty for the root.
        ancestors: ids of the folders above it, the nearest first, the root last.
    """

    account_id: str
    account_name: str
    site_name: str | None
    site_url: str | None
    drive_id: str
    drive_name: str
    drive_type: str
    drive_url: str
    root_id: str
    item_id: str
    path: str
    kind: str
    name: str
    web_url: str
    ancestors: tuple[str, ...] = ()


async def shown(
    look: Look, library: Library, item: RemoteItem, found: dict[str, Any], site: Site | None
) -> ResolvedFolder:
    """Check that an item is a folder, and gather what is shown of it.

    Args:
        found: the item as Graph told it.

    Raises:
        NeedsAttention: it is something else; says what to connect instead.
    """
    above = await _above(look, library.drive_id, item)
    name = item.name or library.name
    if item.kind is ItemKind.FILE:
        raise unresolved.is_a_file(name, above[0].web_url or library.web_url)
    if item.kind is ItemKind.PACKAGE:
        raise unresolved.is_a_package(name)
    if item.kind is ItemKind.SHORTCUT:
        raise unresolved.is_a_shortcut(name, text_of(found, "remoteItem.webUrl", "webUrl"))
    if item.kind not in {ItemKind.FOLDER, ItemKind.ROOT}:
        raise unresolved.is_no_folder(name)
    is_root = item.kind is ItemKind.ROOT
    names = [] if is_root else [one.name or "" for one in reversed(above[:-1])] + [name]
    return ResolvedFolder(
        account_id=look.account.account_id,
        account_name=look.account.name,
        site_name=site.name if site else None,
        site_url=site.web_url if site else None,
        drive_id=library.drive_id,
        drive_name=library.name,
        drive_type=library.drive_type,
        drive_url=library.web_url,
        root_id=item.item_id if is_root else above[-1].item_id,
        item_id=item.item_id,
        path="/".join(names),
        kind=str(item.kind),
        name=library.name if is_root else name,
        web_url=item.web_url or library.web_url,
        ancestors=tuple(one.item_id for one in above),
    )


async def lineage(
    look: Look, drive_id: str, item_id: str, seen: dict[str, RemoteItem] | None = None
) -> list[tuple[str, str]]:
    """Return an item and all folders above it as (id, name), the root last.

    Args:
        seen: folders of the drive that were asked for before, by id; is added to.

    Raises:
        Refused: the item is gone, or not shown.
    """
    path = f"/drives/{encoded(drive_id)}/items/{encoded(item_id)}?{browse.ITEM_FIELDS}"
    item = browse.remote_of(await look.ask(path, "a connected folder"))
    if item is None:
        return []
    line = [item, *await _above(look, drive_id, item, seen)]
    return [(one.item_id, one.name or "") for one in line]


async def _above(
    look: Look, drive_id: str, item: RemoteItem, seen: dict[str, RemoteItem] | None = None
) -> list[RemoteItem]:
    """Return the folders above an item, the nearest first; asked for one by one, by id."""
    found: list[RemoteItem] = []
    seen = {} if seen is None else seen
    while item.kind is not ItemKind.ROOT:
        parent = seen.get(item.parent_id or "")
        if parent is None:
            place = f"items/{encoded(item.parent_id)}" if item.parent_id else "root"
            path = f"/drives/{encoded(drive_id)}/{place}?{browse.ITEM_FIELDS}"
            parent = browse.remote_of(await look.ask(path, "the folder above"))
        if parent is None or parent.item_id == item.item_id or len(found) >= _DEEPEST:
            raise NeedsAttention(
                "Microsoft Graph tells of a folder that lies in no drive.",
                reason=Reason.SOURCE_MISBEHAVES,
            )
        found.append(parent)
        seen[parent.item_id] = parent
        item = parent
    return found

"""driveItem and drive as JSON, with the field set of each profile (facts: documented delta page).

Business delta leaves out ``cTag``, and for removed items ``cTag`` and ``name``; personal delta
leaves out ``cTag`` and ``size`` for removed items. ``parentReference.path`` is absent from
business delta and present, percent-encoded, in personal delta.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from graphsim.clock import iso
from graphsim.items import Item, Kind, Profile, ctag, etag, guid, mime_type

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphsim.drives import Drive

SITE_HOST = "graphsim.invalid"
"""Host of ``webUrl`` and site ids; it exists nowhere, so no client can follow it by mistake."""
_DOWNLOAD = "@microsoft.graph.downloadUrl"
_CALCULATED = {"content.downloadurl": _DOWNLOAD, _DOWNLOAD.lower(): _DOWNLOAD}


def site_id(drive: Drive) -> str:
    """Return the id of the site (or personal site) that a business drive belongs to."""
    return f"{SITE_HOST},{guid('site:' + drive.id).lower()},{guid('web:' + drive.id).lower()}"


def render_item(
    drive: Drive, item: Item, download_url: Callable[[Item], str], *, in_delta: bool = False
) -> dict[str, Any]:
    """Return an item as the drive's profile shows it.

    Args:
        drive: The drive of the item.
        item: The state to show.
        download_url: Makes the pre-authenticated URL of a file.
        in_delta: Whether the answer is a delta page, which leaves out some fields.
    """
    if item.deleted:
        return _tombstone(drive, item)
    precise = drive.profile is Profile.PERSONAL
    created, modified = iso(item.created, fraction=precise), iso(item.modified, fraction=precise)
    shown: dict[str, Any] = {}
    if item.kind is Kind.FILE:
        shown[_DOWNLOAD] = download_url(item)
    shown |= {
        "createdDateTime": created,
        "eTag": etag(drive.profile, item),
        "id": item.id,
        "lastModifiedDateTime": modified,
        "name": item.name,
        "webUrl": _web_url(drive, item),
    }
    if precise or not (in_delta or item.is_container):
        shown["cTag"] = ctag(drive.profile, item)
    person = {"user": {"displayName": "Drive Owner", "id": guid("owner:" + drive.id).lower()}}
    shown |= {
        "size": drive.tree.total_size(item),
        "createdBy": person,
        "lastModifiedBy": person,
        "parentReference": _parent(drive, item, in_delta=in_delta),
        "fileSystemInfo": {"createdDateTime": created, "lastModifiedDateTime": modified},
    }
    shown |= _facets(drive, item)
    for name, value in item.facets.items():
        if value is None:
            shown.pop(name, None)
        else:
            shown[name] = value
    return shown


def selected(shown: dict[str, Any], select: str | None) -> dict[str, Any]:
    """Keep exactly the properties of a ``$select``; what is not listed goes, ``deleted`` too."""
    if not select:
        return shown
    names = (name.strip() for name in select.split(","))
    wanted = {_CALCULATED.get(name.lower(), name.split("/")[0]).lower() for name in names}
    return {name: value for name, value in shown.items() if name.lower() in wanted}


def render_drive(drive: Drive) -> dict[str, Any]:
    """Return the drive resource."""
    used = drive.tree.total_size(drive.tree.root)
    total = 1 << 40
    owner = {"user": {"displayName": "Drive Owner", "id": guid("owner:" + drive.id).lower()}}
    return {
        "id": drive.id,
        "name": drive.name,
        "driveType": drive.profile.value,
        "webUrl": _web_root(drive),
        "createdDateTime": iso(drive.tree.root.created),
        "lastModifiedDateTime": iso(drive.tree.root.modified),
        "owner": owner,
        "quota": {
            "deleted": 0,
            "remaining": max(total - used, 0),
            "state": "normal",
            "total": total,
            "used": used,
        },
    }


def item_path(drive: Drive, item: Item) -> str:
    """Return ``/drives/{id}/root:/a/b`` for an item, not percent-encoded."""
    if item.parent_id is None:
        return f"/drives/{drive.id}/root:"
    return f"/drives/{drive.id}/root:/" + "/".join(drive.tree.names(item))


def _tombstone(drive: Drive, item: Item) -> dict[str, Any]:
    if drive.quirks.tombstone_fields == "id_only":
        return {"id": item.id, "deleted": {}}
    parent = {"driveId": drive.id, "driveType": drive.profile.value, "id": item.parent_id}
    facet: dict[str, Any] = {"folder": {}} if item.is_container else {"file": {}}
    if drive.profile is Profile.PERSONAL:
        return {
            "id": item.id, "name": item.name, "deleted": {}, "parentReference": parent,
            "eTag": etag(drive.profile, item), **facet,
        }  # fmt: skip
    return {
        "id": item.id, "size": 0, "deleted": {"state": "deleted"}, "parentReference": parent,
        "lastModifiedDateTime": "0001-01-01T00:00:00Z", **facet,
    }  # fmt: skip


def _parent(drive: Drive, item: Item, *, in_delta: bool) -> dict[str, Any]:
    reference: dict[str, Any] = {"driveType": drive.profile.value, "driveId": drive.id}
    if drive.profile is not Profile.PERSONAL:
        reference["siteId"] = site_id(drive)
    parent = drive.tree.items.get(item.parent_id) if item.parent_id else None
    if parent is None:
        return reference
    reference["id"] = parent.id
    reference["name"] = parent.name
    if drive.profile is Profile.PERSONAL:
        reference["path"] = quote(item_path(drive, parent), safe="/:!")
    elif not in_delta:
        reference["path"] = item_path(drive, parent)
    return reference


def _facets(drive: Drive, item: Item) -> dict[str, Any]:
    facets: dict[str, Any] = {}
    if item.parent_id is None:
        facets["root"] = {}
    if item.kind is Kind.FOLDER:
        facets["folder"] = {"childCount": drive.tree.child_count(item.id)}
    if item.kind is Kind.FILE:
        hashes = {"quickXorHash": item.quickxor} if item.quickxor else {}
        facets["file"] = {"mimeType": mime_type(item.name), "hashes": hashes}
    return facets


def _web_root(drive: Drive) -> str:
    return f"https://{SITE_HOST}/drives/{quote(drive.name)}"


def _web_url(drive: Drive, item: Item) -> str:
    if item.parent_id is None:
        return _web_root(drive)
    return f"{_web_root(drive)}/{quote('/'.join(drive.tree.names(item)))}"

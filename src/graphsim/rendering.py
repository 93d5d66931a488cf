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

    from graphsim.drive import Drive

_NOTES = (".one", ".onetoc2")
"""Parts of notebooks, which are listed without a hash."""
_YEAR_ONE = "0001-01-01T00:00:00Z"
OFFICE = (".docx", ".doc", ".xlsx", ".xls", ".pptx", ".ppt")
_DOWNLOAD = "@microsoft.graph.downloadUrl"
_CALCULATED = {"content.downloadurl": _DOWNLOAD, _DOWNLOAD.lower(): _DOWNLOAD}


def site_id(drive: Drive) -> str:
    """Return the id of the site (or personal site) that a drive belongs to; empty for none."""
    return drive.site.id if drive.site else ""


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
    return {
        "id": drive.id,
        "name": drive.name,
        "driveType": drive.profile.value,
        "webUrl": _web_root(drive),
        "createdDateTime": iso(drive.tree.root.created),
        "lastModifiedDateTime": iso(drive.tree.root.modified),
        "owner": _owner(drive),
        "quota": {
            "deleted": 0,
            "remaining": max(total - used, 0),
            "state": "normal",
            "total": total,
            "used": used,
        },
    }


def _owner(drive: Drive) -> dict[str, Any]:
    if drive.owner is not None:
        person = drive.owner
        user = {"displayName": person.display_name, "id": person.id, "email": person.name}
        return {"user": user}
    if drive.site is not None:
        return {"group": {"displayName": f"{drive.site.name} Owners"}}
    return {"user": {"displayName": "Drive Owner", "id": guid("owner:" + drive.id).lower()}}


def item_path(drive: Drive, item: Item) -> str:
    """Return ``/drives/{id}/root:/a/b`` for an item, not percent-encoded."""
    if item.parent_id is None:
        return f"/drives/{drive.id}/root:"
    return f"/drives/{drive.id}/root:/" + "/".join(drive.tree.names(item))


def _tombstone(drive: Drive, item: Item) -> dict[str, Any]:
    form = drive.quirks.tombstone_fields
    if form == "id_only":
        return {"id": item.id, "deleted": {}}
    parent = {"driveId": _drive_id(drive), "driveType": drive.profile.value, "id": item.parent_id}
    facet: dict[str, Any] = {"folder": {}} if item.is_container else {"file": {}}
    if drive.profile is Profile.PERSONAL:
        shown = {
            "id": item.id, "name": item.name, "deleted": {}, "parentReference": parent,
            "eTag": etag(drive.profile, item), **facet,
        }  # fmt: skip
    else:
        shown = {
            "id": item.id, "size": 0, "deleted": {"state": "deleted"}, "parentReference": parent,
            "lastModifiedDateTime": _YEAR_ONE, **facet,
        }  # fmt: skip
    if form == "removed":
        del shown["deleted"]
        return shown | {"@removed": {"reason": "deleted"}}
    if form == "year_one":
        times = {"createdDateTime": _YEAR_ONE, "lastModifiedDateTime": _YEAR_ONE}
        return shown | times | {"fileSystemInfo": times}
    return shown


def _parent(drive: Drive, item: Item, *, in_delta: bool) -> dict[str, Any]:
    reference: dict[str, Any] = {"driveType": drive.profile.value, "driveId": _drive_id(drive)}
    if drive.site is not None:
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
        facets["file"] = {"mimeType": mime_type(item.name), **_hashes(drive, item)}
    return facets


def _hashes(drive: Drive, item: Item) -> dict[str, Any]:
    mode = drive.quirks.hashes
    is_note = item.name.lower().endswith(_NOTES)
    if mode == "absent":
        return {}
    if mode == "empty" or is_note or (mode == "after_download" and item.id not in drive.downloaded):
        return {"hashes": {}}
    hashes = {"quickXorHash": item.quickxor} if item.quickxor else {}
    return {"hashes": {**hashes, **item.other_hashes}}


def _drive_id(drive: Drive) -> str:
    """Return the drive's id as its answers spell it."""
    form = drive.quirks.drive_id_form
    if drive.profile is not Profile.PERSONAL or form == "plain":
        return drive.id
    if form == "short":
        return drive.id.lstrip("0")
    odd = drive.id.upper()
    return odd if form == "upper" else odd[:8] + drive.id[8:].lower()


def _web_root(drive: Drive) -> str:
    if drive.site is None:
        return f"https://onedrive.live.com/?cid={drive.id.upper()}"
    return f"{drive.site.web_url}/{quote(drive.library)}"


def _web_url(drive: Drive, item: Item) -> str:
    """Return an item's address in a browser; Office files open in their viewer."""
    root = _web_root(drive)
    if drive.site is None:
        return f"https://onedrive.live.com/?id={quote(item.id, safe='')}&cid={drive.id.upper()}"
    if item.parent_id is None:
        return root
    if item.kind is Kind.FILE and item.name.lower().endswith(OFFICE):
        document, name = quote(f"{{{guid(item.id)}}}"), quote(item.name)
        viewer = f"{drive.site.web_url}/_layouts/15/Doc.aspx"
        return f"{viewer}?sourcedoc={document}&file={name}&action=default&mobileredirect=true"
    return f"{root}/{quote('/'.join(drive.tree.names(item)))}"

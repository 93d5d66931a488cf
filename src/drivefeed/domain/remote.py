"""What a source tells us: drives, items and pages of changes, in the service's own words."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ItemKind(StrEnum):
    """What a driveItem is, by its facets."""

    ROOT = "root"
    FOLDER = "folder"
    FILE = "file"
    PACKAGE = "package"
    VAULT = "vault"
    SHORTCUT = "shortcut"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DriveRef:
    """How to reach one drive: ``drive_id`` as Microsoft spells it, read through one account."""

    account_id: str
    drive_id: str


@dataclass(frozen=True, slots=True)
class RemoteItem:
    """One driveItem as one answer described it. Anything may be missing; only the id is certain.

    Attributes:
        item_id: the driveItem id, stable under rename and move within its drive.
        parent_id: the id of the folder it lies in; None for the root and in bare tombstones.
        size: bytes as listed; the delivered bytes may differ (Office files, HEIC).
        quick_xor: base64 quickXorHash; absent for empty, old or freshly edited files.
        modified_at: milliseconds since the epoch, as the file system facet or the item tells.
        shared: whether it was shared with others, by permissions of its own; None where not asked.
        child_count: how many items a folder says it holds, whoever may see them.
        deleted: True for a tombstone, which often has nothing but the id.
    """

    item_id: str
    parent_id: str | None = None
    name: str | None = None
    kind: ItemKind = ItemKind.UNKNOWN
    size: int | None = None
    media_type: str | None = None
    etag: str | None = None
    ctag: str | None = None
    quick_xor: str | None = None
    created_at: int | None = None
    modified_at: int | None = None
    web_url: str | None = None
    malware: bool = False
    shared: bool | None = None
    child_count: int | None = None
    deleted: bool = False


@dataclass(frozen=True, slots=True)
class DeltaPage:
    """One page of a delta round. Exactly one link is set; only ``delta_link`` ends the round.

    Attributes:
        pages: how many answers of the service it is put together from.
    """

    items: tuple[RemoteItem, ...]
    next_link: str | None
    delta_link: str | None
    pages: int = 1


@dataclass(frozen=True, slots=True)
class RemoteDrive:
    """A drive as the service describes it."""

    drive_id: str
    drive_type: str
    name: str
    web_url: str | None
    root_id: str

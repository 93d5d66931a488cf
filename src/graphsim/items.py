"""The driveItem as graphsim keeps it, and how the three kinds of drive name things."""

from __future__ import annotations

import base64
import enum
import hashlib
import mimetypes
import uuid
from typing import Any

import msgspec


class Profile(enum.StrEnum):
    """The kinds of drive; the values are Graph's ``driveType``."""

    PERSONAL = "personal"
    BUSINESS = "business"
    DOCUMENT_LIBRARY = "documentLibrary"


class Kind(enum.StrEnum):
    """What an item is. A package (a OneNote notebook) is neither file nor folder to a client."""

    FILE = "file"
    FOLDER = "folder"
    PACKAGE = "package"
    SHORTCUT = "shortcut"
    """A ``remoteItem``: something of another drive that was put into this one."""
    OTHER = "other"
    """Whatever its facets say, or nothing: a bundle, a facet that nobody knows."""


class Place(msgspec.Struct, frozen=True):
    """Where a directory drive found an item on disk, and what it looked like then."""

    device: int
    inode: int
    mtime_ns: int
    racy: bool = False
    """Written so shortly before it was read that a later write may carry the same time."""
    ctime_ns: int = 0
    """When its inode last changed: no program can set that back, so no edit hides from it."""


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a driveItem. States are never changed, only replaced (times: epoch seconds)."""

    id: str
    parent_id: str | None
    name: str
    kind: Kind
    ordinal: int
    created: float
    modified: float
    size: int = 0
    quickxor: str | None = None
    other_hashes: dict[str, str] = {}
    """By property name: what personal drives publish beside the quickXorHash."""
    etag_version: int = 1
    ctag_version: int = 1
    seq: int = 0
    changed_at: float = 0.0
    moved_seq: int = 0
    """The number of the change that put it into the folder it is in; 0 for where it was made."""
    deleted: bool = False
    deleted_with: int | None = None
    """The number of the removal that took this item; equal for all that went with one folder."""
    deleted_top: bool = False
    """True for the item that was removed itself, false for those below it."""
    place: Place | None = None
    facets: dict[str, Any] = {}
    """Properties laid over the rendered item: ``malware``, ``remoteItem``, a wrong ``size`` …"""

    @property
    def is_container(self) -> bool:
        """Whether other items can be below this one."""
        return self.kind in {Kind.FOLDER, Kind.PACKAGE}


def drive_id(profile: Profile, seed: str) -> str:
    """Return a drive id in the shape of the profile, the same for the same seed."""
    digest = hashlib.sha256(f"drive:{seed}".encode()).digest()
    if profile is Profile.PERSONAL:
        return digest[:8].hex()
    return "b!" + base64.urlsafe_b64encode(digest + digest[:16]).decode().rstrip("=")


def item_id(profile: Profile, drive: str, ordinal: int) -> str:
    """Return the id of the ``ordinal``-th item of a drive (34 base32 characters, or DRIVE!n)."""
    if profile is Profile.PERSONAL:
        return f"{drive.upper()}!{100 + ordinal}"
    digest = hashlib.sha256(f"item:{drive}:{ordinal}".encode()).digest()
    return "01" + base64.b32encode(digest[:20]).decode()


def guid(text: str) -> str:
    """Return an upper-case GUID derived from ``text``."""
    return str(uuid.UUID(bytes=hashlib.sha256(text.encode()).digest()[:16])).upper()


def etag(profile: Profile, item: Item) -> str:
    """Return the item's eTag, which moves with content and metadata."""
    if profile is Profile.PERSONAL:
        return "a" + base64.b64encode(f"{item.id}.{item.etag_version}".encode()).decode()
    return f'"{{{guid(item.id)}}},{item.etag_version}"'


def ctag(profile: Profile, item: Item) -> str:
    """Return the item's cTag, which moves with content alone."""
    if profile is Profile.PERSONAL:
        return "a" + base64.b64encode(f"c:{item.id}.{item.ctag_version}".encode()).decode()
    return f'"c:{{{guid(item.id)}}},{item.ctag_version}"'


def mime_type(name: str) -> str:
    """Return the media type Graph would derive from a file's name."""
    return mimetypes.guess_type(name, strict=False)[0] or "application/octet-stream"


def normal_drive_id(identifier: str) -> str:
    """Return a drive id as it is compared: personal ids vary in case and lose leading zeros."""
    if identifier.startswith("b!"):
        return identifier
    return identifier.lower().rjust(16, "0")

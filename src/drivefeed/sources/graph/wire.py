"""Graph's JSON, read with msgspec: strictly where it is well-formed, field by field where not.

One odd item must never lose the page it is on, so a page is split into the raw bytes of its
items first. Every field is optional, unknown ones are ignored.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

from drivefeed.domain.errors import Transient

SELECT = (
    "id",
    "name",
    "size",
    "eTag",
    "cTag",
    "file",
    "folder",
    "package",
    "remoteItem",
    "bundle",
    "root",
    # Tells the Personal Vault from other folders.
    "specialFolder",
    # Without this one, tombstones arrive looking like living items.
    "deleted",
    "malware",
    "shared",
    "parentReference",
    "webUrl",
    "fileSystemInfo",
    "createdDateTime",
    "lastModifiedDateTime",
)


class Hashes(msgspec.Struct, rename="camel"):
    """The hashes facet; all of them can be missing."""

    quick_xor_hash: str | None = None


class FileFacet(msgspec.Struct, rename="camel"):
    """Says that an item is a file."""

    mime_type: str | None = None
    hashes: Hashes | None = None


class ParentReference(msgspec.Struct, rename="camel"):
    """Where an item lies. The path is not read: it can be absent, stale or encoded twice."""

    id: str | None = None
    drive_id: str | None = None


class SpecialFolder(msgspec.Struct):
    """Says that a folder has a purpose of its own, by a name for programs."""

    name: str | None = None


class FileSystemInfo(msgspec.Struct, rename="camel"):
    """Times as the person's device recorded them."""

    created_date_time: str | None = None
    last_modified_date_time: str | None = None


class WireItem(msgspec.Struct):
    """A driveItem. Facets that only matter by being there are of any type."""

    id: str | None = None
    name: str | None = None
    size: int | float | None = None
    e_tag: str | None = msgspec.field(default=None, name="eTag")
    c_tag: str | None = msgspec.field(default=None, name="cTag")
    web_url: str | None = msgspec.field(default=None, name="webUrl")
    created: str | None = msgspec.field(default=None, name="createdDateTime")
    modified: str | None = msgspec.field(default=None, name="lastModifiedDateTime")
    parent: ParentReference | None = msgspec.field(default=None, name="parentReference")
    times: FileSystemInfo | None = msgspec.field(default=None, name="fileSystemInfo")
    file: FileFacet | None = None
    folder: Any = None
    package: Any = None
    special: SpecialFolder | None = msgspec.field(default=None, name="specialFolder")
    bundle: Any = None
    root: Any = None
    malware: Any = None
    shared: Any = None
    deleted: Any = None
    remote_item: Any = msgspec.field(default=None, name="remoteItem")
    removed: Any = msgspec.field(default=None, name="@removed")


class WireDrive(msgspec.Struct, rename="camel"):
    """A drive resource."""

    id: str
    drive_type: str | None = None
    name: str | None = None
    web_url: str | None = None


class WirePage(msgspec.Struct):
    """A page of delta; ``value`` is the only field it cannot do without."""

    value: list[msgspec.Raw]
    next_link: Any = msgspec.field(default=None, name="@odata.nextLink")
    delta_link: Any = msgspec.field(default=None, name="@odata.deltaLink")


_page = msgspec.json.Decoder(WirePage)
_item = msgspec.json.Decoder(WireItem)
_drive = msgspec.json.Decoder(WireDrive)

_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What the decoders raise; the last one for what is nested too deeply."""

_ESSENTIAL = {"parent", "file"}
"""Fields without which we cannot say what an item is, if they are there but make no sense."""


def read_page(body: bytes) -> WirePage:
    """Split a page.

    Raises:
        Transient: it is no page: not JSON, cut short, or without a list of items.
    """
    try:
        return _page.decode(body)
    except _UNREADABLE as error:
        raise Transient(
            f"Microsoft Graph answered with {_instead_of_json(body, error)}."
        ) from error


def _instead_of_json(body: bytes, error: Exception) -> str:
    if body.lstrip()[:1] == b"<":
        return (
            "a web page instead of the changes; look whether a proxy or a sign-in page stands "
            "between this machine and Microsoft"
        )
    if isinstance(error, RecursionError):
        return "a page that is nested deeper than any reader follows"
    return f"an unreadable page ({error})"


def read_drive(body: bytes) -> WireDrive:
    """Read a drive.

    Raises:
        Transient: it is not one.
    """
    try:
        return _drive.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise Transient(f"Microsoft Graph answered with an unreadable drive ({error}).") from error


def read_item(raw: bytes | msgspec.Raw) -> tuple[WireItem, bool]:
    """Read an item, however odd; the second value is False where its nature stayed unclear."""
    try:
        return _item.decode(raw), True
    except _UNREADABLE:
        return _salvage(bytes(raw))


def _salvage(raw: bytes) -> tuple[WireItem, bool]:
    """Take what can be read of an item with wrong types, broken UTF-8 or lone surrogates."""
    try:
        # As floats, because Python refuses to read integers of more than 4,300 digits.
        found = json.loads(raw.decode("utf-8", "replace"), parse_int=float)
    except (ValueError, RecursionError):
        found = _shallow(raw)
    item = WireItem()
    if not isinstance(found, dict):
        return item, False
    clear = True
    for known in msgspec.structs.fields(WireItem):
        try:
            value = _sound(found.get(known.encode_name))
            setattr(item, known.name, msgspec.convert(value, known.type))
        except (msgspec.ValidationError, RecursionError):
            clear = clear and known.name not in _ESSENTIAL
    return item, clear


def _shallow(raw: bytes) -> dict[str, Any] | None:
    """Read what is plain text in an item that is nested too deeply elsewhere; None without any."""
    try:
        parts = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        return {name: msgspec.json.decode(part) for name, part in parts.items() if part[:1] == b'"'}
    except _UNREADABLE:
        return None


def _sound(value: Any) -> Any:
    """Replace what cannot be written as UTF-8 in strings, at any depth."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {_sound(key): _sound(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_sound(part) for part in value]
    return value

"""From driveItems as Graph writes them to :class:`drivefeed.domain.remote.RemoteItem`."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import lru_cache
from typing import TYPE_CHECKING

from drivefeed.domain.errors import NeedsAttention, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import DeltaPage, ItemKind, RemoteItem
from drivefeed.sources.graph import wire
from drivefeed.sources.graph.links import check_link
from drivefeed.telemetry import log

if TYPE_CHECKING:
    import msgspec

_log = log("source")

_LARGEST = 2**63 - 1
_LONGEST_ID = 200
"""Characters. Graph's own ids have about 40; what is longer cannot be kept and is not kept cut."""
_LONGEST_HASH = 40
_NO_TIMES = wire.FileSystemInfo()
_NO_HASHES = wire.Hashes()


def item_of(raw: bytes | msgspec.Raw) -> RemoteItem | None:
    """Read one driveItem; None where it does not even have an id that can be one.

    Args:
        raw: the item's JSON.
    """
    item, clear = wire.read_item(raw)
    item_id = _usable_id(item.id)
    if item_id is None:
        return None
    times = item.times or _NO_TIMES
    hashes = (item.file.hashes if item.file else None) or _NO_HASHES
    kind = kind_of(item) if clear else ItemKind.UNKNOWN
    deleted = _there(item.deleted) or _there(item.removed)
    return RemoteItem(
        item_id=item_id,
        parent_id=_parent(item) if kind is not ItemKind.ROOT else None,
        name=_text(item.name),
        kind=kind,
        size=_size(item.size),
        media_type=_text(item.file.mime_type) if item.file else None,
        etag=_text(item.e_tag),
        ctag=_text(item.c_tag),
        quick_xor=_hash(hashes.quick_xor_hash),
        created_at=_millis(times.created_date_time) or _millis(item.created),
        modified_at=_millis(times.last_modified_date_time) or _millis(item.modified),
        web_url=_text(item.web_url),
        malware=_there(item.malware),
        # We ask for it, so that its absence says no; a tombstone says nothing.
        shared=None if deleted else _there(item.shared),
        child_count=_children(item.folder),
        deleted=deleted,
    )


def page_of(body: bytes, base_url: str) -> DeltaPage:
    """Read one page of delta.

    A page with both links goes on: ending a round early could remove what was not yet listed.

    Raises:
        Transient: the page is unreadable or has no link at all.
        NeedsAttention: its link leads away from Graph.
    """
    page = wire.read_page(body)
    items = [item_of(raw) for raw in page.value]
    if lost := items.count(None):
        _log.warning("items_without_usable_id", passed_over=lost)
    kept = tuple(item for item in items if item is not None)
    for link, ends in ((page.next_link, False), (page.delta_link, True)):
        if link is None or link == "":
            continue
        if not isinstance(link, str):
            raise NeedsAttention(
                "Microsoft Graph gave a link that is not text, so the round cannot go on.",
                reason=Reason.SOURCE_MISBEHAVES,
            )
        check_link(link, base_url)
        return DeltaPage(kept, None if ends else link, link if ends else None)
    raise Transient("Microsoft Graph answered with a page that neither goes on nor ends.")


def kind_of(item: wire.WireItem) -> ItemKind:
    """Tell what an item is by its facets.

    A shortcut or package may carry a folder facet as well, so those are asked first; an item
    that is folder and file counts as a folder, which loses nothing below it.
    """
    # The plain case first: this is asked of each item of a million.
    if _has_no_other_facet(item) and _there(item.file):
        return ItemKind.FILE
    for facet, kind in (
        (item.root, ItemKind.ROOT),
        (item.remote_item, ItemKind.SHORTCUT),
        (item.package, ItemKind.PACKAGE),
        (_is_vault(item), ItemKind.VAULT),
        (item.bundle, ItemKind.UNKNOWN),
        (item.folder, ItemKind.FOLDER),
        (item.file, ItemKind.FILE),
    ):
        if _there(facet):
            return kind
    return ItemKind.UNKNOWN


def _has_no_other_facet(item: wire.WireItem) -> bool:
    """Tell whether an item has none of the facets that count more than that of a file."""
    return (
        item.root is None
        and item.remote_item is None
        and item.package is None
        and item.special is None
        and item.bundle is None
        and item.folder is None
    )


def _is_vault(item: wire.WireItem) -> bool:
    return item.special is not None and (item.special.name or "").casefold() == "vault"


def _parent(item: wire.WireItem) -> str | None:
    return _usable_id(item.parent.id) if item.parent else None


def _usable_id(value: str | None) -> str | None:
    """An id is kept as it is or not at all: with a NUL made visible it would be that of another."""
    return value if value and len(value) <= _LONGEST_ID and "\x00" not in value else None


def _hash(value: str | None) -> str | None:
    return _text(value) if value and len(value) <= _LONGEST_HASH else None


def _there(facet: object) -> bool:
    """A facet is set by being there, even empty; null and false are not."""
    return facet is not None and facet is not False


def _children(folder: object) -> int | None:
    count = folder.get("childCount") if isinstance(folder, dict) else None
    return count if isinstance(count, int) and not isinstance(count, bool) else None


def _text(value: str | None) -> str | None:
    """Empty counts as absent; NUL, which no database column takes, is made visible."""
    return value.replace("\x00", "\N{REPLACEMENT CHARACTER}") if value else None


def _size(value: float | None) -> int | None:
    if value is None or not 0 <= value <= _LARGEST:
        return None
    return int(value)


@lru_cache(maxsize=4096)
def _millis(value: str | None) -> int | None:
    """Read an ISO 8601 time; None for garbage and for the year 1, Graph's way to say nothing.

    An item tells the same time twice or more often, and files that came together share theirs.
    """
    if not value:
        return None
    try:
        time = datetime.fromisoformat(value)
        millis = round(time.replace(tzinfo=time.tzinfo or UTC).timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
    return millis if millis > 0 else None

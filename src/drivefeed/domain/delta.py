"""What a page of changes and a finished round mean for the shadow tree. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from drivefeed.domain.identity import Fingerprint, changed, version_key
from drivefeed.domain.remote import ItemKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from drivefeed.domain.remote import RemoteItem


@dataclass(frozen=True, slots=True)
class TreeItem:
    """One item of a drive's shadow tree.

    Attributes:
        shared: whether Graph shows it as shared; None where that is not known.
        own_permissions: whether it does not only inherit its folder's permissions, as it was when
            that was asked; None where nobody asked since it last changed.
        generation: the full enumeration in which it was last seen.
        origin_id: the id under which it was first known, where the service gave it another one.
        dirty: a decision about it, or about what lies below it, is still to be made.
    """

    item_id: str
    parent_id: str | None = None
    name: str = ""
    kind: ItemKind = ItemKind.UNKNOWN
    size: int | None = None
    media_type: str | None = None
    etag: str | None = None
    quick_xor: str | None = None
    created_at: int | None = None
    modified_at: int | None = None
    web_url: str | None = None
    malware: bool = False
    shared: bool | None = None
    own_permissions: bool | None = None
    deleted: bool = False
    generation: int = 0
    version_key: str = ""
    origin_id: str | None = None
    dirty: bool = False

    @property
    def key(self) -> str:
        """The id that its document and imports are named after: it outlives a change of ids."""
        return self.origin_id or self.item_id

    @property
    def is_whole(self) -> bool:
        """Whether enough was told of it to decide about it; what was left out is asked for."""
        kind = self.kind
        has_place = self.parent_id is not None or kind is ItemKind.ROOT
        return bool(self.name) and has_place and kind is not ItemKind.UNKNOWN

    @property
    def is_container(self) -> bool:
        """Whether other items may lie below it."""
        return self.kind in {ItemKind.ROOT, ItemKind.FOLDER, ItemKind.PACKAGE, ItemKind.VAULT}


@dataclass(frozen=True, slots=True)
class PagePlan:
    """What one page writes: the rows to upsert, each id once."""

    rows: tuple[TreeItem, ...] = ()
    fresh: frozenset[str] = field(default_factory=frozenset)
    """Ids of items whose row is new or changed in a way that calls for a decision."""
    news: int = 0
    """How many items it told something new of: in a listing, those that were not told before."""


def plan_page(
    items: Iterable[RemoteItem],
    known: Mapping[str, TreeItem],
    *,
    generation: int,
    enumerating: bool = False,
    tells_changes: bool = False,
) -> PagePlan:
    """Work out what a page writes. The last occurrence of an id wins, as Microsoft documents.

    Args:
        items: the page, in the order in which it arrived.
        known: the rows of the shadow tree for the page's ids, as far as there are any.
        generation: the drive's current full enumeration; seen items are stamped with it.
        enumerating: whether that enumeration is under way.
        tells_changes: whether what it holds is told because something changed about it.
    """
    rows: dict[str, TreeItem] = {}
    for item in items:
        old = rows.get(item.item_id) or known.get(item.item_id)
        if item.deleted:
            if old is not None and not old.deleted:
                rows[item.item_id] = replace(old, deleted=True, dirty=True, generation=generation)
            continue
        rows[item.item_id] = _merge(old, item, generation, is_change=tells_changes)
    return PagePlan(
        rows=tuple(rows.values()),
        fresh=frozenset(key for key, row in rows.items() if row.dirty),
        news=sum(
            _is_news(known.get(key), row, enumerating=enumerating) for key, row in rows.items()
        ),
    )


def _is_news(old: TreeItem | None, new: TreeItem, *, enumerating: bool) -> bool:
    if old is None:
        return True
    if enumerating:
        # Telling of one item again and again, however differently, brings no listing to its end.
        return old.generation < new.generation
    return replace(new, dirty=old.dirty) != old


def _merge(old: TreeItem | None, item: RemoteItem, generation: int, *, is_change: bool) -> TreeItem:
    is_new = old is None
    new = TreeItem(
        item_id=item.item_id,
        parent_id=item.parent_id,
        name=item.name or "",
        kind=item.kind,
        size=item.size,
        media_type=item.media_type,
        etag=item.etag or None,
        quick_xor=item.quick_xor or None,
        created_at=item.created_at,
        modified_at=item.modified_at,
        web_url=item.web_url,
        malware=item.malware,
        shared=item.shared,
        generation=generation,
        version_key=version_key(item) if is_new else "",
        dirty=is_new,
    )
    if old is None:
        return new
    new = replace(
        new,
        # Answers may leave properties out; what is left out is as before.
        parent_id=new.parent_id or old.parent_id,
        name=new.name or old.name,
        kind=old.kind if new.kind is ItemKind.UNKNOWN else new.kind,
        media_type=new.media_type or old.media_type,
        created_at=_or(new.created_at, old.created_at),
        modified_at=_or(new.modified_at, old.modified_at),
        web_url=new.web_url or old.web_url,
        origin_id=old.origin_id,
        shared=old.shared if new.shared is None else new.shared,
    )
    # Another permission is no other version, so that it may be all that an item is told for.
    as_before = not is_change and (new.etag or old.etag, new.shared) == (old.etag, old.shared)
    new = replace(new, own_permissions=old.own_permissions if as_before else None)
    if changed(_fingerprint(old), Fingerprint.of(item)):
        new = replace(new, version_key=version_key(item))
    else:
        new = replace(
            new,
            etag=new.etag or old.etag,
            quick_xor=new.quick_xor or old.quick_xor,
            size=_or(new.size, old.size),
            version_key=old.version_key,
        )
    return replace(new, dirty=old.dirty or _calls_for_decision(old, new))


def _or(new: int | None, old: int | None) -> int | None:
    return old if new is None else new


def _fingerprint(row: TreeItem) -> Fingerprint:
    return Fingerprint(row.quick_xor, row.etag, row.size, row.modified_at)


def _calls_for_decision(old: TreeItem, new: TreeItem) -> bool:
    if old.deleted or _place(old) != _place(new):
        return True
    if new.is_container:
        return False
    return _decided_by(old) != _decided_by(new)


def _decided_by(row: TreeItem) -> tuple[object, ...]:
    return row.version_key, row.size, row.malware, row.modified_at, row.own_permissions


def _place(row: TreeItem) -> tuple[str | None, str, ItemKind]:
    return row.parent_id, row.name, row.kind


def braked(*, removals: int, documents: int, count: int, percent: int, floor: int) -> bool:
    """Tell whether so many removals at once must stop and ask.

    Args:
        removals: how many documents one settling would remove from a connection.
        documents: how many the connection had before.
        count: more removals than this always stop.
        percent: more than this share stops as well, from ``floor`` removals on; without a floor,
            deleting one file of a folder of three would stop and ask.
        floor: the fewest removals that a share can stop.
    """
    if removals > count:
        return True
    return removals >= floor and removals * 100 > documents * percent

"""The tree of a drive with its change log: the latest state of every item, dead or alive.

Every change gets the next sequence number. An item's own ``seq`` is the number of its last change,
so "what changed since N" is "which items have ``seq`` above N": only the latest state, as delta
reports it. Deleted items stay as tombstones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unicodedata import normalize

import msgspec

from graphsim.items import Item, Kind, Profile, item_id
from graphsim.lateness import Lateness

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping, Sequence

    from graphsim.clock import Clock


class Tree:
    """Items of one drive by id, indexed by parent. Not thread-safe: one loop changes it."""

    def __init__(
        self, profile: Profile, drive: str, clock: Clock, items: Iterable[Item] = ()
    ) -> None:
        self._profile = profile
        self._drive = drive
        self._clock = clock
        self.items: MutableMapping[str, Item] = {}
        self.seq = 0
        self.removals = 0
        self.lateness = Lateness(clock)
        self.listeners: list[Callable[[Item], None]] = []
        """Called with each change, right after it was recorded."""
        self._log: dict[str, None] = {}
        """Ids in the order of their latest change."""
        self._ordinals = 0
        self._children: dict[str, dict[str, None]] = {}
        self._sizes: dict[str, int] = {}
        known = sorted(items, key=lambda one: one.ordinal)
        for item in known:
            self._index(item)
        self._log = dict.fromkeys(one.id for one in sorted(known, key=lambda one: one.seq))
        if not self.items:
            now = clock.now()
            self._ordinals = 1
            self.put(
                Item(
                    id=item_id(profile, drive, 1), parent_id=None, name="root", kind=Kind.FOLDER,
                    ordinal=1, created=now, modified=now,
                )
            )  # fmt: skip
        self.root_id = item_id(profile, drive, 1)

    @property
    def root(self) -> Item:
        """The root folder."""
        return self.items[self.root_id]

    def now(self) -> float:
        """Return the time of the drive's clock."""
        return self._clock.now()

    def live(self, identifier: str) -> Item | None:
        """Return the item of this id unless it is deleted or unknown."""
        item = self.items.get(identifier) or self.items.get(identifier.upper())
        return None if item is None or item.deleted else item

    def children(self, parent_id: str) -> list[Item]:
        """Return the live children of a folder, in the order they came."""
        return [self.items[child] for child in self.child_ids(parent_id)]

    def child_ids(self, parent_id: str) -> Collection[str]:
        """Return the ids of the live children of a folder, in the order they came."""
        return self._children.get(parent_id, ())

    def child_count(self, parent_id: str) -> int:
        """Return how many live children a folder has."""
        return len(self.child_ids(parent_id))

    def child(self, parent_id: str, name: str) -> Item | None:
        """Return a live child by name: exactly, else ignoring case and Unicode form."""
        folded = normalize("NFC", name).casefold()
        found: Item | None = None
        for item in self.children(parent_id):
            if item.name == name:
                return item
            if normalize("NFC", item.name).casefold() == folded:
                found = item
        return found

    def resolve(self, start: Item, names: Iterable[str]) -> Item | None:
        """Walk down from ``start`` by names; ``.`` and empty names stay where they are."""
        item: Item | None = start
        for name in names:
            if item is None:
                return None
            if name not in {"", "."}:
                item = self.child(item.id, name)
        return item

    def ancestors(self, item: Item) -> list[Item]:
        """Return the folders above an item, the root first."""
        chain: list[Item] = []
        parent = self.items.get(item.parent_id) if item.parent_id else None
        while parent is not None:
            chain.append(parent)
            parent = self.items.get(parent.parent_id) if parent.parent_id else None
        chain.reverse()
        return chain

    def names(self, item: Item) -> list[str]:
        """Return the names from below the root to the item."""
        return [*(above.name for above in self.ancestors(item)[1:]), item.name]

    def descendants(self, identifier: str) -> Iterator[Item]:
        """Yield the live items below a folder, parents before children."""
        pending = list(self.child_ids(identifier))
        while pending:
            item = self.items[pending.pop()]
            yield item
            if item.is_container:
                pending.extend(self.child_ids(item.id))

    def walk(self) -> Iterator[Item]:
        """Yield the root and all live items, level by level."""
        level = [self.root_id]
        while level:
            yield from (self.items[one] for one in level)
            level = [child for one in level for child in self.child_ids(one)]

    def snapshot(self) -> Sequence[Item]:
        """Return what :meth:`walk` yields now, unaffected by later changes."""
        return list(self.walk())

    def changed_after(self, seq: int) -> list[Item]:
        """Return the items whose latest change has a number above ``seq``, the oldest first."""
        found: list[Item] = []
        for identifier in reversed(self._log):
            item = self.items[identifier]
            if item.seq <= seq:
                break
            found.append(item)
        found.reverse()
        return found

    def changed_since(self, moment: float) -> list[Item]:
        """Return the items whose latest change came after a time, the latest first."""
        found: list[Item] = []
        for identifier in reversed(self._log):
            item = self.items[identifier]
            if item.changed_at <= moment:
                break
            found.append(item)
        return found

    def total_size(self, item: Item) -> int:
        """Return a file's size, or the bytes of all files below a folder."""
        return self._sizes.get(item.id, 0) if item.is_container else item.size

    def new_id(self) -> tuple[str, int]:
        """Return an id that was never used, with its ordinal."""
        self._ordinals += 1
        return item_id(self._profile, self._drive, self._ordinals), self._ordinals

    def put(self, item: Item) -> Item:
        """Record a new state of an item as the next change and return it as recorded."""
        self.seq += 1
        before = self.items.get(item.id)
        stays = before is None or before.parent_id == item.parent_id
        recorded = msgspec.structs.replace(
            item,
            seq=self.seq,
            changed_at=self._clock.now(),
            moved_seq=item.moved_seq if stays else self.seq,
        )
        self.lateness.note(before)
        self._index(recorded)
        self._log.pop(item.id, None)
        self._log[item.id] = None
        for listener in self.listeners:
            listener(recorded)
        return recorded

    def annotate(self, item: Item) -> Item:
        """Replace an item's private facts (its place on disk) without it being a change."""
        self.items[item.id] = item
        return item

    def delete(self, identifier: str) -> list[Item]:
        """Turn an item and all below it into tombstones, deepest first; return them."""
        self.removals += 1
        doomed = [self.items[identifier], *self.descendants(identifier)]
        return [
            self.put(
                msgspec.structs.replace(
                    item, deleted=True, deleted_with=self.removals,
                    deleted_top=item.id == identifier, etag_version=item.etag_version + 1,
                )
            )
            for item in reversed(doomed)
        ]  # fmt: skip

    def removed_with(self, identifier: str) -> list[Item]:
        """Return a tombstone and all that was removed with it, parents first."""
        top = self.items[identifier]
        group = [one for one in self.changed_after(0) if one.deleted_with == top.deleted_with]
        group.sort(key=lambda item: item.seq, reverse=True)
        return [item for item in group if item.deleted]

    def restore(self, identifier: str) -> list[Item]:
        """Bring back an item with all that was removed with it, under the same ids."""
        return [self.put(self.revived(item)) for item in self.removed_with(identifier)]

    def rename_root(self, identifier: str) -> None:
        """Give the root another id; every item directly below it is a change by that."""
        old = self.items.pop(self.root_id)
        self._log.pop(old.id, None)
        children = [self.items[one] for one in self._children.pop(old.id, {})]
        self._sizes[identifier] = self._sizes.pop(old.id, 0)
        self._children[identifier] = {child.id: None for child in children}
        self.root_id = identifier
        self.put(msgspec.structs.replace(old, id=identifier))
        for child in children:
            self.items[child.id] = msgspec.structs.replace(child, parent_id=identifier)
            self.put(self.items[child.id])

    @staticmethod
    def revived(item: Item) -> Item:
        """Return a tombstone as a live state, not yet recorded."""
        return msgspec.structs.replace(
            item, deleted=False, deleted_with=None, deleted_top=False,
            etag_version=item.etag_version + 1,
        )  # fmt: skip

    def _index(self, item: Item) -> None:
        old = self.items.get(item.id)
        if old is not None and not old.deleted and old.parent_id is not None:
            self._grow(old.parent_id, -self.total_size(old))
            self._children.get(old.parent_id, {}).pop(item.id, None)
        self.items[item.id] = item
        self.seq = max(self.seq, item.seq)
        self.removals = max(self.removals, item.deleted_with or 0)
        self._ordinals = max(self._ordinals, item.ordinal)
        if item.parent_id is not None and not item.deleted:
            self._children.setdefault(item.parent_id, {})[item.id] = None
            self._grow(item.parent_id, self.total_size(item))

    def _grow(self, folder: str | None, size: int) -> None:
        while folder is not None and size:
            self._sizes[folder] = self._sizes.get(folder, 0) + size
            above = self.items.get(folder)
            folder = above.parent_id if above else None

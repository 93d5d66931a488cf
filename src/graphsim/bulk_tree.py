"""The tree of a generated drive: what never changed is computed, what did is kept."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, MutableMapping, Sequence
from typing import TYPE_CHECKING, overload

from graphsim.items import Item, Profile
from graphsim.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Collection

    from graphsim.bulk_layout import BulkLayout
    from graphsim.clock import Clock


class BulkItems(MutableMapping[str, Item]):
    """Items by id: the changed ones from memory, all others made up when they are asked for.

    Args:
        layout: Makes the others up.
        changed: The items that are in memory from the start.
    """

    def __init__(self, layout: BulkLayout, changed: dict[str, Item]) -> None:
        self._layout = layout
        self.changed = changed
        self.taken: Counter[str] = Counter()
        """How many of a generated folder's own children have changed, by its id."""

    def __getitem__(self, identifier: str) -> Item:
        item = self.changed.get(identifier)
        if item is not None:
            return item
        ordinal = self._layout.ordinal_of(identifier)
        if ordinal is None:
            raise KeyError(identifier)
        return self._layout.item(ordinal)

    def __setitem__(self, identifier: str, item: Item) -> None:
        if identifier not in self.changed:
            ordinal = self._layout.ordinal_of(identifier)
            if ordinal is not None:
                self.taken[self._layout.item(ordinal).parent_id or ""] += 1
        self.changed[identifier] = item

    def __delitem__(self, identifier: str) -> None:
        raise TypeError("Items of a bulk drive are never forgotten.")

    def __contains__(self, identifier: object) -> bool:
        return identifier in self.changed or (
            isinstance(identifier, str) and self._layout.ordinal_of(identifier) is not None
        )

    def __iter__(self) -> Iterator[str]:
        yield from self.changed
        for ordinal in range(2, self._layout.last + 1):
            identifier = self._layout.id_of(ordinal)
            if identifier not in self.changed:
                yield identifier

    def __len__(self) -> int:
        return self._layout.last - sum(self.taken.values()) + len(self.changed) - 1


class BulkSnapshot(Sequence[Item]):
    """All live items of one moment, in the order of their ordinals, new ones last.

    Args:
        layout: Makes up what had not changed.
        items: What had.
    """

    def __init__(self, layout: BulkLayout, items: BulkItems) -> None:
        self._layout = layout
        self._changed: dict[int, Item] = {}
        self._extra: list[Item] = []
        dead: list[int] = []
        for identifier, item in items.changed.items():
            ordinal = 1 if item.parent_id is None else layout.ordinal_of(identifier)
            if ordinal is None:
                self._extra += [] if item.deleted else [item]
            elif item.deleted:
                dead.append(ordinal)
            else:
                self._changed[ordinal] = item
        dead.sort()
        self._dead = frozenset(dead)
        self._gaps = [ordinal - 1 - number for number, ordinal in enumerate(dead)]
        self._generated = layout.last - len(dead)

    def __len__(self) -> int:
        return self._generated + len(self._extra)

    @overload
    def __getitem__(self, wanted: int) -> Item: ...
    @overload
    def __getitem__(self, wanted: slice) -> list[Item]: ...
    def __getitem__(self, wanted: int | slice) -> Item | list[Item]:
        """Return one item, or those of a slice without a step."""
        if isinstance(wanted, int):
            start = wanted + len(self) if wanted < 0 else wanted
            if not 0 <= start < len(self):
                raise IndexError(wanted)
            return self._part(start, start + 1)[0]
        start, stop, _ = wanted.indices(len(self))
        return self._part(start, stop)

    def _part(self, start: int, stop: int) -> list[Item]:
        part: list[Item] = []
        end = min(stop, self._generated)
        ordinal = start + 1 + bisect_right(self._gaps, start)
        while len(part) < end - start:
            if ordinal not in self._dead:
                part.append(self._changed.get(ordinal) or self._layout.item(ordinal))
            ordinal += 1
        first = max(start - self._generated, 0)
        return part + self._extra[first : max(stop - self._generated, 0)]


class BulkTree(Tree):
    """A tree over a layout.

    Args:
        layout: What it is like at first.
        profile: The kind of drive.
        drive: The drive's id.
        clock: The time of changes.
    """

    def __init__(self, layout: BulkLayout, profile: Profile, drive: str, clock: Clock) -> None:
        super().__init__(profile, drive, clock)
        self._layout = layout
        self._bulk = BulkItems(layout, dict(self.items))
        self.items = self._bulk
        self._ordinals = layout.last

    def snapshot(self) -> Sequence[Item]:
        """Return all live items of this moment; nothing is made up before it is looked at."""
        return BulkSnapshot(self._layout, self._bulk)

    def walk(self) -> Iterator[Item]:
        """Yield all live items, those that were created later last."""
        return iter(self.snapshot())

    def child_ids(self, parent_id: str) -> Collection[str]:
        """Return the ids of what is directly below a folder."""
        own = self._children.get(parent_id, {})
        ordinal = self._base(parent_id)
        if ordinal is None or ordinal > self._layout.folders + 1:
            return own
        changed, id_of = self._bulk.changed, self._layout.id_of
        below = [id_of(one) for ones in self._layout.child_ordinals(ordinal) for one in ones]
        if self._bulk.taken[parent_id]:
            below = [one for one in below if one not in changed]
        return [*below, *own]

    def child_count(self, parent_id: str) -> int:
        """Return how many live children a folder has."""
        own = len(self._children.get(parent_id, ()))
        ordinal = self._base(parent_id)
        if ordinal is None or ordinal > self._layout.folders + 1:
            return own
        below = sum(len(ones) for ones in self._layout.child_ordinals(ordinal))
        return below - self._bulk.taken[parent_id] + own

    def total_size(self, item: Item) -> int:
        """Return a file's size, or the bytes of all files below a folder."""
        ordinal = self._base(item.id) if item.is_container else None
        base = self._layout.folder_size(ordinal) if ordinal is not None else 0
        return base + super().total_size(item)

    def _base(self, identifier: str) -> int | None:
        return 1 if identifier == self.root_id else self._layout.ordinal_of(identifier)

"""Which item is which file: identity rules between two looks at a folder.

1. A folder keeps its id by inode, wherever it went; by name, if its old inode is nowhere.
2. A file keeps its id by name first: an editor that writes a temporary file and renames it over
   the old name has saved the old item. Else by inode, if size and time (or content) agree, because
   file systems use an inode again soon after a deletion.
3. What comes back to its old place is restored under its old id: a file with its old bytes, a
   folder by name. With ``restore="new"`` it is a new item.
4. Everything else is new, and what was not found is gone. A folder that can't be read keeps what
   was known below it.

Nothing is changed here; the plan is applied by :mod:`graphsim.directory`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from graphsim.items import Item, Kind
from graphsim.scanning import Found, Scan, join

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphsim.tree import Tree


class Unsettled(Exception):
    """A file changed while it was read; the next look will know."""


class Placed(msgspec.Struct):
    """One found file or folder with the item it is; ``known`` is null for a new one."""

    path: str
    folder: str
    found: Found
    known: Item | None = None
    quickxor: str | None = None
    unsettled: bool = False


class Plan(msgspec.Struct):
    """What a look found: every placed entry, parents first, and the items that are gone."""

    placed: list[Placed]
    gone: list[Item]


class Matcher:
    """Matches one scan against the tree.

    Args:
        tree: What was known; only read.
        scan: What was found.
        hash_of: Returns a file's quickXorHash by path and stat values, null when unreadable;
            raises :class:`Unsettled`.
        restore_same: Give back the old id to what comes back.
    """

    def __init__(
        self,
        tree: Tree,
        scan: Scan,
        hash_of: Callable[[str, Found], str | None],
        *,
        restore_same: bool,
    ) -> None:
        self._tree = tree
        self._scan = scan
        self._hash_of = hash_of
        self._ids: dict[str, Item] = {"": tree.root}
        self._claimed: set[str] = {tree.root_id}
        self._named_children: dict[str, dict[str, Item]] = {}
        self._by_inode: dict[tuple[int, int], list[Item]] = {}
        self._graves: dict[tuple[str | None, str], list[Item]] = {}
        for item in tree.items.values():
            if item.deleted and restore_same:
                self._graves.setdefault((item.parent_id, item.name), []).append(item)
            elif item.place is not None and not item.deleted:
                key = (item.place.device, item.place.inode)
                self._by_inode.setdefault(key, []).append(item)
        self._folder_inodes = {
            (entry.device, entry.inode) for _, entry in _entries(scan) if entry.is_folder
        }

    def plan(self) -> Plan:
        """Return what is where."""
        folders = list(self._folders())
        files = self._files()
        for path in self._scan.unreadable:
            if path in self._ids:
                below = self._tree.descendants(self._ids[path].id)
                self._claimed.update(item.id for item in below)
        gone = [item for item in self._tree.walk() if item.id not in self._claimed]
        return Plan([*folders, *files], gone)

    def _folders(self) -> Iterator[Placed]:
        for folder, entry in _entries(self._scan):
            if not entry.is_folder:
                continue
            path = join(folder, entry.name)
            known = self._known_folder(path, folder, entry)
            if known is not None:
                self._claim(path, known)
            yield Placed(path, folder, entry, known)

    def _known_folder(self, path: str, folder: str, entry: Found) -> Item | None:
        named = self._named(folder, entry.name, Kind.FOLDER)
        for candidate in self._free(entry, Kind.FOLDER):
            if candidate is named or self._looks_moved(candidate, path, entry):
                return candidate
        if named is not None:
            place = named.place
            if place is None or (place.device, place.inode) not in self._folder_inodes:
                return named
        return next(self._buried(folder, entry.name, Kind.FOLDER), None)

    def _looks_moved(self, candidate: Item, path: str, entry: Found) -> bool:
        """Tell a moved folder from a new one that happens to have a used inode."""
        if candidate.place is not None and candidate.place.mtime_ns == entry.mtime_ns:
            return True
        before = {child.name for child in self._tree.children(candidate.id)}
        after = {child.name for child in self._scan.folders.get(path, ())}
        return bool(before & after) or not (before or after)

    def _files(self) -> list[Placed]:
        files = [
            Placed(join(folder, entry.name), folder, entry)
            for folder, entry in _entries(self._scan)
            if not entry.is_folder
        ]
        for one in files:
            one.known = self._named(one.folder, one.found.name, Kind.FILE)
            if one.known is not None:
                self._claim(one.path, one.known)
        for one in files:
            if one.known is None:
                one.known = self._same_stat(one.found)
                if one.known is not None:
                    self._claim(one.path, one.known)
        for one in files:
            try:
                one.quickxor = self._content(one)
            except Unsettled:
                one.unsettled = True
                continue
            if one.known is None:
                one.known = self._same_content(one)
                if one.known is not None:
                    self._claim(one.path, one.known)
        return files

    def _content(self, one: Placed) -> str | None:
        known, found = one.known, one.found
        if known is not None and known.place is not None and not known.place.racy:
            place = known.place
            was = (place.device, place.inode, known.size, place.mtime_ns)
            same = was == (found.device, found.inode, found.size, found.mtime_ns)
            if same and (place.ctime_ns == found.ctime_ns or self._has_moved(known, one)):
                return known.quickxor
        return self._hash_of(one.path, found)

    def _has_moved(self, known: Item, one: Placed) -> bool:
        """Tell whether it got another name or folder, which changes an inode and not its bytes."""
        parent = self._ids.get(one.folder)
        return (known.parent_id, known.name) != (parent and parent.id, one.found.name)

    def _same_stat(self, found: Found) -> Item | None:
        for candidate in self._free(found, Kind.FILE):
            place = candidate.place
            if place and (candidate.size, place.mtime_ns) == (found.size, found.mtime_ns):
                return candidate
        return None

    def _same_content(self, one: Placed) -> Item | None:
        if one.quickxor is None:
            return None
        candidates = [*self._free(one.found, Kind.FILE)]
        candidates += self._buried(one.folder, one.found.name, Kind.FILE)
        for candidate in candidates:
            if (candidate.size, candidate.quickxor) == (one.found.size, one.quickxor):
                return candidate
        return None

    def _named(self, folder: str, name: str, kind: Kind) -> Item | None:
        parent = self._ids.get(folder)
        if parent is None:
            return None
        item = self._children(parent).get(name)
        return item if item and item.kind is kind and item.id not in self._claimed else None

    def _children(self, parent: Item) -> dict[str, Item]:
        if parent.id not in self._named_children:
            children = self._tree.children(parent.id)
            self._named_children[parent.id] = {child.name: child for child in children}
        return self._named_children[parent.id]

    def _free(self, found: Found, kind: Kind) -> Iterator[Item]:
        for item in self._by_inode.get((found.device, found.inode), ()):
            if item.kind is kind and item.id not in self._claimed:
                yield item

    def _buried(self, folder: str, name: str, kind: Kind) -> Iterator[Item]:
        """Yield the tombstones of a place, the latest first."""
        parent = self._ids.get(folder)
        if parent is None:
            return
        for item in sorted(self._graves.get((parent.id, name), ()), key=lambda i: -i.seq):
            if item.kind is kind and item.id not in self._claimed:
                yield item

    def _claim(self, path: str, item: Item) -> None:
        self._claimed.add(item.id)
        if item.is_container:
            self._ids[path] = item


def _entries(scan: Scan) -> Iterator[tuple[str, Found]]:
    for folder, entries in scan.folders.items():
        for entry in entries:
            yield folder, entry

"""A drive that is a real folder: what happens on disk becomes changes of the drive.

The folder is looked at again when a request asks for it (never more often than each tenth of a
second, nor for more than about a third of the time). A look costs one ``stat`` per file; only what
changed is read. Identity rules are in :mod:`graphsim.matching`.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import stat
import time
from typing import TYPE_CHECKING

import msgspec

from graphsim.bodies import Body, FileBody, hash_body
from graphsim.drive import Drive
from graphsim.errors import GraphError, not_found
from graphsim.items import Item, Kind, Place, Profile, drive_id
from graphsim.matching import Matcher, Placed, Plan, Unsettled
from graphsim.scanning import FolderGoneError, Found, Scan, scan
from graphsim.shelf import Shelf
from graphsim.tree import Tree

if TYPE_CHECKING:
    from pathlib import Path

    from graphsim.clock import Clock
    from graphsim.seals import Seals

_PAUSE = 0.1
_LARGE = 16 << 20
_LATEST = 253_402_300_799.0
_log = logging.getLogger("graphsim")


class DirectoryDrive(Drive):
    """Serves a folder as a drive.

    Args:
        folder: The folder to serve; only read.
        profile: The kind of drive.
        seals: Makes delta tokens.
        clock: The time of changes.
        state: Where ids are remembered; outside of the folder.

    Raises:
        OSError: The folder is missing, the state lies inside of it, or it is in use.
    """

    def __init__(
        self, folder: Path, profile: Profile, seals: Seals, clock: Clock, state: Path
    ) -> None:
        self.folder = folder.resolve()
        if not self.folder.is_dir():
            raise NotADirectoryError(f"{folder} is not a folder; graphsim serves existing folders.")
        if state.resolve().is_relative_to(self.folder):
            raise OSError(f"The state folder {state} lies inside {folder}; choose one outside.")
        self._shelf = Shelf(state, self.folder, profile)
        identifier = drive_id(profile, f"folder:{self._shelf.seed()}")
        tree = Tree(profile, identifier, clock, self._shelf.items())
        super().__init__(self.folder.name, profile, identifier, seals=seals, clock=clock, tree=tree)
        self._looking = asyncio.Lock()
        self._looked_at = float("-inf")
        self._took = 0.0
        self._unsaved: dict[str, Item] = {}
        self.looks = 0
        """How often the folder was looked at."""
        self.files_read = 0
        """How many files were read to hash them."""

    def close(self) -> None:
        """Let go of the state folder."""
        self._shelf.close()

    async def refresh(self, *, at_once: bool = False) -> None:
        """Look at the folder and record what changed; ``at_once`` skips the pause between looks.

        Raises:
            GraphError: 503 while the folder is missing; what was known stays known.
        """
        async with self._looking:
            pause = max(_PAUSE, 2 * self._took)
            if not at_once and time.monotonic() - self._looked_at < pause:
                return
            try:
                look, plan = await asyncio.to_thread(self._look)
            except FolderGoneError as error:
                raise GraphError(503, "serviceNotAvailable", str(error)) from error
            unread = dict.fromkeys(look.unreadable, "graphsim could not read this folder")
            self._note_left_out(look.left_out | unread)
            self._unsaved |= self._apply(look, plan)
            await self._save()
            self.looks += 1
            self._looked_at = time.monotonic()

    def _note_left_out(self, left_out: dict[str, str]) -> None:
        for path, why in left_out.items():
            if path not in self.left_out:
                _log.warning("%r is left out: %s.", path, why)
        self.left_out = left_out

    async def _save(self) -> None:
        """Put new states on the shelf before any client hears of them."""
        if not self._unsaved:
            return
        try:
            await asyncio.to_thread(self._shelf.save, list(self._unsaved.values()))
        except sqlite3.Error as error:
            message = f"graphsim can't write its state ({error}); free some disk space."
            raise GraphError(503, "serviceNotAvailable", message) from error
        self._unsaved.clear()

    async def open(self, item: Item) -> tuple[Item, Body]:
        """Open a file's bytes; the folder is looked at again if it is not as remembered.

        Raises:
            GraphError: 404 when the file is gone, 403 when it can't be read.
        """
        if item.place is not None and item.place.racy:
            await self.refresh(at_once=True)
        for attempt in range(3):
            item = self.tree.items[item.id]
            if item.deleted:
                break
            path = "/".join([str(self.folder), *self.tree.names(item)])
            try:
                body = await asyncio.to_thread(FileBody, path)
            except PermissionError as error:
                message = f"{item.name} can't be read on graphsim's disk."
                raise GraphError(403, "accessDenied", message) from error
            except OSError:
                await self.refresh(at_once=True)
                continue
            if not stat.S_ISREG(body.stat.st_mode):
                body.close()
                break
            # A file that is written all the time is served as it is: its hash will not agree.
            if _is_as_remembered(item, body) or attempt == 2:  # noqa: PLR2004 - the last attempt
                return item, body
            body.close()
            await self.refresh(at_once=True)
        raise not_found()

    def _look(self) -> tuple[Scan, Plan]:
        began = time.monotonic()
        look = scan(str(self.folder))
        self._took = time.monotonic() - began
        same = self.quirks.restore == "same"

        def hash_of(path: str, found: Found) -> str | None:
            if found.size > _LARGE and look.is_racy(found):
                raise Unsettled  # it is being written: reading it now would be in vain
            return self._hash(path, found)

        return look, Matcher(self.tree, look, hash_of, restore_same=same).plan()

    def _hash(self, path: str, found: Found) -> str | None:
        try:
            body = FileBody(f"{self.folder}/{path}")
        except FileNotFoundError as error:
            raise Unsettled from error
        except OSError as error:
            _log.warning("%s can't be read (%s); it is listed without a hash.", path, error)
            return None
        try:
            self.files_read += 1
            value = hash_body(body)
            after = FileBody(f"{self.folder}/{path}")
            after.close()
        except OSError as error:
            raise Unsettled from error
        finally:
            body.close()
        for facts in (body.stat, after.stat):
            seen = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
            if seen != (found.inode, found.size, found.mtime_ns):
                raise Unsettled
        return value

    def _apply(self, look: Scan, plan: Plan) -> dict[str, Item]:
        """Record a plan in the tree; return the items whose remembered state must be saved."""
        changed: dict[str, Item] = {}
        ids = {"": self.tree.root_id}
        for one in plan.placed:
            parent = ids.get(one.folder)
            if parent is None or one.unsettled:
                continue
            item, is_news = self._state(one, parent, look)
            ids[one.path] = item.id
            if is_news:
                changed[item.id] = self.tree.put(item)
            elif item != one.known:
                changed[item.id] = self.tree.annotate(item)
        for item in plan.gone:
            if not self.tree.items[item.id].deleted:
                changed |= {dead.id: dead for dead in self.tree.delete(item.id)}
        if self.looks == 0:
            changed[self.tree.root_id] = self.tree.root
        return changed

    def _state(self, one: Placed, parent: str, look: Scan) -> tuple[Item, bool]:
        """Return the state an entry should have, and whether that is a change clients see."""
        found, known = one.found, one.known
        racy = not found.is_folder and look.is_racy(found)
        place = Place(found.device, found.inode, found.mtime_ns, racy)
        modified = min(max(found.mtime_ns / 1e9, 0.0), _LATEST)
        if known is None:
            identifier, ordinal = self.tree.new_id()
            kind = Kind.FOLDER if found.is_folder else Kind.FILE
            return Item(
                id=identifier, parent_id=parent, name=found.name, kind=kind, ordinal=ordinal,
                created=modified, modified=modified, size=found.size, quickxor=one.quickxor,
                place=place,
            ), True  # fmt: skip
        new = Tree.revived(known) if known.deleted else known
        content_changed = not found.is_folder and (
            (known.size, known.quickxor) != (found.size, one.quickxor)
        )
        renamed = (known.parent_id, known.name) != (parent, found.name)
        touched = not found.is_folder and known.modified != modified
        is_news = known.deleted or content_changed or renamed or touched
        new = msgspec.structs.replace(
            new, parent_id=parent, name=found.name, size=found.size, quickxor=one.quickxor,
            place=place, modified=modified if is_news else known.modified,
            etag_version=known.etag_version + is_news,
            ctag_version=known.ctag_version + content_changed,
        )  # fmt: skip
        return new, is_news


def _is_as_remembered(item: Item, body: FileBody) -> bool:
    place = item.place
    if place is None:
        return False
    seen = (body.stat.st_ino, body.stat.st_size, body.stat.st_mtime_ns)
    return seen == (place.inode, item.size, place.mtime_ns)

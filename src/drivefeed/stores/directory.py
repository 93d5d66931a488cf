"""The object store in a folder of the local disk: what a single machine needs.

An object is one file under its key. It is written under a temporary name in ``.partial``, made
durable, and only then given its name, by a hard link that fails where the name is taken. So a
reader sees a whole object or none, whatever kills us.
"""

from __future__ import annotations

import asyncio
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from drivefeed.domain.errors import AlreadyExists, NotFound, Part, PartDown
from drivefeed.ports import StoredObject
from drivefeed.stores.disk import PartialFile, disk_error, disk_errors, sync_folder
from drivefeed.stores.keys import PARTIAL, require_key, require_prefix
from drivefeed.stores.streams import PIECE, regroup, save
from drivefeed.stores.threads import Threads
from drivefeed.stores.trial import try_out
from drivefeed.stores.walk import Walk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

_GRACE = 30.0


class DirectoryStore:
    """Implements :class:`drivefeed.ports.ObjectStore` in the folder ``root``.

    The folder needs a file system with hard links. It may be shared by several processes of one
    machine.

    Args:
        root: made if it is not there.
        threads: how many file operations may run at once.

    Raises:
        PartDown: the folder cannot be made.
    """

    def __init__(self, root: Path, *, threads: int = 8) -> None:
        self._root = Path(root).absolute()
        self._partial = self._root / PARTIAL
        self._threads = Threads(limit=threads, name="directory-store", grace=_GRACE)
        with disk_errors(self._root):
            self._partial.mkdir(parents=True, exist_ok=True)

    async def put(
        self,
        key: str,
        chunks: AsyncIterator[bytes],
        *,
        content_type: str,  # noqa: ARG002 - a folder has no place for it, the catalog has
        size: int | None,
    ) -> StoredObject:
        """Store a new object; see :meth:`drivefeed.ports.ObjectStore.put`."""
        target = self._path(key)
        if await self._threads.run(self._stat, key) is not None:
            raise AlreadyExists(f"There is an object under {key!r} already.")
        file = PartialFile(self._partial, expected=size)
        try:
            spare: list[bytearray] = []
            async for piece in regroup(chunks, lambda _: PIECE, spare):
                await self._threads.run(file.write, piece)
                spare.append(piece)
            digest = await self._threads.run(file.publish, target, self._root)
        finally:
            await asyncio.shield(self._threads.run(file.discard))
        return StoredObject(key=key, size=file.size, sha256=digest)

    async def stat(self, key: str) -> StoredObject | None:
        """Return the object's size; see :meth:`drivefeed.ports.ObjectStore.stat`."""
        return await self._threads.run(self._stat, key)

    async def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield the object's bytes; see :meth:`drivefeed.ports.ObjectStore.read`."""
        fd = await self._threads.run(self._open, key)
        try:
            while piece := await self._threads.run(self._read, fd):
                yield piece
        finally:
            os.close(fd)

    async def fetch(self, key: str, path: Path) -> None:
        """Copy the object into a file; see :meth:`drivefeed.ports.ObjectStore.fetch`."""
        await save(self.read(key), path, self._threads)

    async def delete(self, key: str) -> bool:
        """Delete the object; see :meth:`drivefeed.ports.ObjectStore.delete`."""
        return await self._threads.run_to_its_end(self._delete, key)

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """Yield objects in key order; see :meth:`drivefeed.ports.ObjectStore.list`.

        Holds the names of the largest folder on the way, and nothing else.
        """
        walk = Walk(self._root, require_prefix(prefix))
        while batch := await self._threads.run(self._batch, walk):
            for found in batch:
                yield found

    async def address(self, key: str, *, seconds: int) -> str | None:
        """Return None: a folder has no URLs."""
        del key, seconds
        return None

    async def abort_uploads(self, *, before: int) -> int:
        """Remove stale partial files; see :meth:`drivefeed.ports.ObjectStore.abort_uploads`.

        The time of the last write counts, so an upload that is still moving is never taken.
        """
        return await self._threads.run(self._sweep, before)

    async def unfinished_uploads(self, *, before: int) -> int:
        """Count them; see :meth:`drivefeed.ports.ObjectStore.unfinished_uploads`."""
        return len(await self._threads.run(self._stale, before))

    async def check(self) -> None:
        """Try the store out; see :meth:`drivefeed.ports.ObjectStore.check`."""
        await try_out(self, f"the folder {self._root}")

    async def aclose(self) -> None:
        """End the threads."""
        await self._threads.aclose()

    # --- what runs in threads ------------------------------------------------------------------

    def _path(self, key: str) -> Path:
        return self._root / require_key(key)

    def _require_root(self) -> None:
        # An unmounted disk looks like a store without objects; nobody may conclude that.
        if not self._partial.is_dir():
            raise PartDown(
                f"{self._root} is not there or was emptied: its folder {PARTIAL!r} is missing. "
                "Mount the disk, or start again to make a new store.",
                part=Part.STORE,
            )

    def _stat(self, key: str) -> StoredObject | None:
        path = self._path(key)
        try:
            found = path.lstat()
        except (FileNotFoundError, NotADirectoryError):
            self._require_root()
            return None
        except OSError as error:
            raise disk_error(error, path) from error
        if not stat.S_ISREG(found.st_mode):
            return None
        return StoredObject(key, found.st_size, modified_at=found.st_mtime_ns // 1_000_000)

    def _open(self, key: str) -> int:
        if self._stat(key) is None:
            raise NotFound(f"There is no object under {key!r}.")
        try:
            return os.open(self._path(key), os.O_RDONLY)
        except FileNotFoundError as error:
            raise NotFound(f"There is no object under {key!r}.") from error
        except OSError as error:
            raise disk_error(error, self._path(key)) from error

    def _read(self, fd: int) -> bytes:
        with disk_errors(self._root):
            return os.read(fd, PIECE)

    def _delete(self, key: str) -> bool:
        if self._stat(key) is None:
            return False
        path = self._path(key)
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise disk_error(error, path) from error
        with disk_errors(self._root):
            sync_folder(path.parent)
        with suppress(OSError):  # a folder that is not empty ends the climb
            for folder in path.parents:
                if folder == self._root:
                    break
                folder.rmdir()
        return True

    def _batch(self, walk: Walk) -> Sequence[StoredObject]:
        with disk_errors(self._root):
            batch = walk.batch()
        if not batch:
            self._require_root()
        return batch

    def _sweep(self, before: int) -> int:
        removed = 0
        with disk_errors(self._partial):
            for path in self._stale(before):
                with suppress(FileNotFoundError):  # its upload ended meanwhile
                    path.unlink()
                    removed += 1
        return removed

    def _stale(self, before: int) -> Sequence[Path]:
        self._require_root()
        found = []
        with disk_errors(self._partial), os.scandir(self._partial) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    if entry.stat(follow_symlinks=False).st_mtime_ns < before * 1_000_000:
                        found.append(Path(entry.path))
        return found

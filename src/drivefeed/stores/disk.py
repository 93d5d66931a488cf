"""Blocking file operations of the stores, and what the disk's errors mean to a person."""

from __future__ import annotations

import errno
import os
import tempfile
import threading
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from drivefeed.domain.errors import AlreadyExists, Part, PartDown

if TYPE_CHECKING:
    from collections.abc import Iterator

_FULL = {errno.ENOSPC, errno.EDQUOT}
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
_MKDIR_ATTEMPTS = 20


def disk_error(error: OSError, where: Path, *, needed: int | None = None) -> PartDown:
    """Translate an error of the operating system into a sentence about the disk ``where`` is on.

    Args:
        error: what the operating system said.
        where: the folder or file that was worked on.
        needed: bytes that were to be written, if known.
    """
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        amount = "more space" if needed is None else f"{needed:,} bytes"
        what = "The quota on" if error.errno == errno.EDQUOT else "The disk of"
        text = f"{what} {where} is full: {amount} would be needed. Free space or choose another."
    elif error.errno == errno.EROFS:
        text = f"{where} is on a disk that is mounted read-only. Mount it writable."
    elif error.errno in {errno.EACCES, errno.EPERM}:
        text = f"{where} may not be used by this user ({reason}). Correct its permissions."
    elif error.errno == errno.ENOENT:
        text = f"{where} is not there ({reason}). Is its disk mounted?"
    else:
        text = f"{where} cannot be used: {reason}."
    return PartDown(text, part=Part.STORE)


@contextmanager
def disk_errors(where: Path, *, needed: int | None = None) -> Iterator[None]:
    """Raise :class:`PartDown` in place of every ``OSError`` inside."""
    try:
        yield
    except OSError as error:
        raise disk_error(error, where, needed=needed) from error


class PartialFile:
    """A file that is being written and has no name that anybody looks for yet.

    The lock makes ``discard`` safe while a write of a cancelled caller is still running.

    Args:
        folder: where the temporary file is made; on the disk where the file shall end up.
        expected: bytes that will be written in all, if known; for the message on a full disk.
    """

    def __init__(self, folder: Path, *, expected: int | None = None) -> None:
        self._folder = folder
        self._expected = expected
        self._lock = threading.Lock()
        self._digest = sha256()
        self._path: Path | None = None
        self._fd = -1
        self._discarded = False
        self.size = 0

    def write(self, piece: bytes | bytearray) -> None:
        """Append ``piece``; the file is made with the first one.

        Raises:
            PartDown: the disk is full or refuses us.
        """
        with self._lock, disk_errors(self._folder, needed=self._expected or self.size + len(piece)):
            self._open()
            self._digest.update(piece)
            view = memoryview(piece)
            while view:
                view = view[os.write(self._fd, view) :]
            self.size += len(piece)

    def publish(self, target: Path, root: Path) -> str:
        """Give the file its name unless the name is taken, durably; return its SHA-256 (hex).

        Raises:
            AlreadyExists: something has that name.
            PartDown: the disk is full or refuses us.
        """
        with self._lock, disk_errors(root, needed=self._expected or self.size):
            path = self._open()
            os.fsync(self._fd)
            _link(path, target, root)
            path.unlink()
            self._close()
            return self._digest.hexdigest()

    def replace(self, target: Path) -> None:
        """Give the file its name, in place of what has it; not fsynced.

        Raises:
            PartDown: the disk refuses us.
        """
        with self._lock, disk_errors(target):
            self._open().replace(target)
            self._close()

    def discard(self) -> None:
        """Remove what was written and refuse to write more; fine after ``publish``."""
        with self._lock:
            self._discarded = True
            if self._path is not None:
                with suppress(OSError):  # the sweep of stale partials takes what stays
                    self._path.unlink()
                self._close()

    def _open(self) -> Path:
        if self._discarded:
            raise OSError(errno.ECANCELED, "the upload was cancelled")
        if self._path is None:
            self._fd, name = tempfile.mkstemp(prefix="upload-", dir=self._folder)
            self._path = Path(name)
        return self._path

    def _close(self) -> None:
        os.close(self._fd)
        self._path, self._fd, self._discarded = None, -1, True


def _link(path: Path, target: Path, root: Path) -> None:
    # A hard link fails where the name is taken; a rename would replace what is there. A delete
    # may remove the empty folder between our mkdir and our link, hence more than one attempt.
    for attempt in range(_MKDIR_ATTEMPTS):
        try:
            _make_folder(target.parent, root)
            os.link(path, target)
        except (FileExistsError, NotADirectoryError) as error:
            raise AlreadyExists(f"There is something under {target} already.") from error
        except FileNotFoundError:
            if attempt == _MKDIR_ATTEMPTS - 1 or not path.exists():
                raise
        except OSError as error:
            if error.errno in _NO_LINKS:
                raise PartDown(
                    f"{root} is on a file system without hard links, which keep an object from "
                    "being overwritten. Choose a folder on another disk.",
                    part=Part.STORE,
                ) from error
            raise
        else:
            sync_folder(target.parent)
            return


def _make_folder(folder: Path, root: Path) -> None:
    if folder.is_dir():
        return
    if folder != root:
        _make_folder(folder.parent, root)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in ``folder`` durable; without effect if it was removed meanwhile."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return
    try:
        os.fsync(fd)
    finally:
        os.close(fd)

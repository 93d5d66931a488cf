"""Looking at a real folder: names, kinds and stat values; no content is read here.

Symbolic links, sockets, pipes and devices are not part of the drive, and neither are names that
are not valid UTF-8, because Graph could not spell them. What is left out is named with the reason.
"""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import msgspec

RACY_NS = 50_000_000
"""A file written so many nanoseconds before the scan may be written again under the same time."""

_MOST_LOOKS = 5
"""So often is a folder read that somebody changes all the time."""


class Found(msgspec.Struct, frozen=True):
    """One file or folder on disk."""

    name: str
    is_folder: bool
    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class Scan(msgspec.Struct):
    """One look at the whole folder. Paths are relative, with ``/``; the root is empty."""

    folders: dict[str, list[Found]]
    """The entries of each folder that could be read, parents before children."""
    unreadable: set[str]
    """Folders whose entries are unknown: refused, or gone while we looked."""
    left_out: dict[str, str]
    """What is not part of the drive, by path, with the reason."""
    started_ns: int
    ended_ns: int = 0

    def is_racy(self, found: Found) -> bool:
        """Tell whether a file may change after this look without its stat values changing.

        A time in the future is no such case: the next write would bring it back to the present.
        """
        return self.started_ns - RACY_NS < found.mtime_ns < self.ended_ns + RACY_NS


class FolderGoneError(OSError):
    """The served folder itself can't be read."""


def scan(root: str) -> Scan:
    """Look at every file and folder below ``root``, level by level.

    Raises:
        FolderGoneError: ``root`` is missing or can't be read.
    """
    # Compared with the file system's own times, so the machine's clock and not the virtual one.
    result = Scan({}, set(), {}, time.time_ns())
    level = [""]
    while level:
        below: list[str] = []
        for path in level:
            try:
                entries, left_out = _entries(f"{root}/{path}" if path else root)
            except OSError as error:
                if not path:
                    message = f"The served folder {root} can't be read: {error.strerror}."
                    raise FolderGoneError(error.errno, message) from error
                result.unreadable.add(path)
                continue
            result.folders[path] = entries
            result.left_out |= {join(path, name): why for name, why in left_out.items()}
            below += [join(path, entry.name) for entry in entries if entry.is_folder]
        level = below
    result.ended_ns = time.time_ns()
    return result


def join(path: str, name: str) -> str:
    """Join a relative path and a name."""
    return f"{path}/{name}" if path else name


def _entries(path: str) -> tuple[list[Found], dict[str, str]]:
    """Return the entries of a folder, read again while it changes under the eye.

    A file that is renamed between the listing and its stat would be seen under neither name, and
    come back as another file.
    """
    for _ in range(_MOST_LOOKS):
        before = Path(path).stat().st_mtime_ns
        found, left_out, is_whole = _look(path)
        if is_whole and Path(path).stat().st_mtime_ns == before:
            break
    found.sort(key=lambda entry: entry.name)
    return found, left_out


def _look(path: str) -> tuple[list[Found], dict[str, str], bool]:
    """Read a folder once; the last value tells whether all that it listed was still there."""
    found: list[Found] = []
    left_out: dict[str, str] = {}
    is_whole = True
    with os.scandir(path) as entries:
        for entry in entries:
            try:
                one = _found(entry)
            except FileNotFoundError:
                is_whole = False
                continue
            except OSError as error:
                one = error.strerror or type(error).__name__
            if isinstance(one, Found):
                found.append(one)
            else:
                left_out[os.fsencode(entry.name).decode(errors="backslashreplace")] = one
    return found, left_out, is_whole


def _found(entry: os.DirEntry[str]) -> Found | str:
    """Return the entry, or why it is left out."""
    try:
        entry.name.encode()
    except UnicodeEncodeError:
        return "its name is not UTF-8"
    facts = entry.stat(follow_symlinks=False)
    if stat.S_ISLNK(facts.st_mode):
        return "it is a symbolic link"
    is_folder = stat.S_ISDIR(facts.st_mode)
    if not (is_folder or stat.S_ISREG(facts.st_mode)):
        return "it is a pipe, a socket or a device"
    size = 0 if is_folder else facts.st_size
    times = (facts.st_mtime_ns, facts.st_ctime_ns)
    return Found(entry.name, is_folder, facts.st_dev, facts.st_ino, size, *times)

"""Where copies of documents lie while their text is read: gone when the process is gone."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_PREFIX = "work-"
_LOCK = "lock"


@contextmanager
def work_folder(below: Path) -> Iterator[Path]:
    """Make a folder for one process, and remove what killed processes left beside it.

    A killed process cannot clean up, and what it leaves are documents, which may have been
    erased everywhere else since. Whether an owner lives is told by a lock that the kernel gives
    back when the process ends, however it ends.
    """
    # Python 3.11 names a folder below a relative one relative to where we are.
    below = below.absolute()
    _remove_abandoned(below)
    folder = below / tempfile.mkdtemp(prefix=_PREFIX, dir=below)
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_abandoned(below: Path) -> None:
    for folder in below.glob(f"{_PREFIX}*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            continue  # no folder, or not ours
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # its owner works in it
        else:
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)

"""A walk through a folder in the order of keys."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

from drivefeed.ports import StoredObject
from drivefeed.stores.keys import PARTIAL

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_BATCH = 1000


class Walk:
    """Finds the objects below ``root`` whose key starts with ``prefix``, batch by batch.

    Keys come in the order of their UTF-8 bytes, as S3 lists them: a folder sorts as its name with
    the slash, so that ``a-b`` comes before ``a/x``.
    """

    def __init__(self, root: Path, prefix: str) -> None:
        folder, _, start = prefix.rpartition("/")
        self._root = root
        self._found = self._walk(f"{folder}/" if folder else "", start)

    def batch(self) -> list[StoredObject]:
        """Return the next objects, none at the end. Blocks on the disk.

        Raises:
            OSError: a folder cannot be read; one that was removed meanwhile is no error.
        """
        return list(islice(self._found, _BATCH))

    def _walk(self, folder: str, start: str) -> Iterator[StoredObject]:
        for name in self._names(folder, start):
            if name.endswith("/"):
                yield from self._walk(folder + name, "")
                continue
            with suppress(FileNotFoundError):
                found = (self._root / folder / name).lstat()
                yield StoredObject(
                    folder + name, found.st_size, modified_at=found.st_mtime_ns // 1_000_000
                )

    def _names(self, folder: str, start: str) -> list[str]:
        names = []
        with (
            suppress(FileNotFoundError, NotADirectoryError),
            os.scandir(self._root / folder) as entries,
        ):
            for entry in entries:
                if not entry.name.startswith(start) or (not folder and entry.name == PARTIAL):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    names.append(entry.name + "/")
                elif entry.is_file(follow_symlinks=False):
                    names.append(entry.name)
        # Code points order like UTF-8 bytes.
        names.sort()
        return names

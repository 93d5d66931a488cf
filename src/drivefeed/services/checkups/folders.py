"""Whether folders can be written, and how much room there is."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING

from drivefeed.services.checkups.finding import Finding, green, red, yellow

if TYPE_CHECKING:
    from pathlib import Path

LEAST_FREE_BYTES = 2 * 1024**3
LEAST_FREE_TEMP_BYTES = 512 * 1024**2
NO_SPACE_BYTES = 64 * 1024**2


def look_at_folder(folder: Path, name: str, remedy: str, *, least_free: int) -> Finding:
    """Write a small file into a folder, or into the nearest one above that exists.

    Args:
        name: what people call it; the finding's subject.
        remedy: what to do where it cannot be written.
        least_free: bytes below which it is yellow.
    """
    folder = folder.absolute()
    there = next(one for one in (folder, *folder.parents) if one.exists())
    try:
        if not there.is_dir():
            raise NotADirectoryError(0, "it is no folder")
        handle, path = tempfile.mkstemp(prefix=".drivefeed-check-", dir=there)
        os.close(handle)
        os.unlink(path)  # noqa: PTH108 - mkstemp gives a string
    except OSError as error:
        words = f"The {name} '{there}' cannot be written: {error.strerror}."
        return red("disk", words, remedy, subject=name)
    free = shutil.disk_usage(there).free
    words = f"{_gib(free)} free in the {name} '{folder}'."
    if free < NO_SPACE_BYTES:
        return red("disk", words, "Free some space; the work goes on by itself.", subject=name)
    if free < least_free:
        return yellow("disk", words, "Free some space before the disk is full.", subject=name)
    return green("disk", words, subject=name)


def _gib(size: int) -> str:
    return f"{size / 1024**3:.1f} GiB"

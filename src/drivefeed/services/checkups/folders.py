"""Whether folders can be written, and how much room there is."""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import TYPE_CHECKING

from drivefeed.domain.explanations import explain
from drivefeed.domain.reasons import Reason
from drivefeed.domain.words import size_of
from drivefeed.services.checkups.finding import Finding, green, red, yellow
from drivefeed.services.gate import existing

if TYPE_CHECKING:
    from drivefeed.services.gate import Place

NO_SPACE_BYTES = 64 * 1024**2
"""With less, nothing that is written there can be expected to work."""
PLENTY = 4
"""Below so many times the high mark it is time to make room, though nothing holds yet."""


def look_at_folder(place: Place, remedy: str) -> Finding:
    """Write a small file into a folder, or into the nearest one above that exists.

    The low mark of the settings is what makes downloads hold.

    Args:
        remedy: what to do where it cannot be written.
    """
    name, there = place.name, existing(place.folder)
    try:
        if not there.is_dir():
            raise NotADirectoryError(0, "it is no folder")
        handle, path = tempfile.mkstemp(prefix=".drivefeed-check-", dir=there)
        os.close(handle)
        os.unlink(path)  # noqa: PTH108 - mkstemp gives a string
    except OSError as error:
        words = f"The {name} '{there}' cannot be written: {error.strerror}."
        return red("disk", words, remedy, subject=name)
    free, marks = shutil.disk_usage(there).free, place.marks
    words = f"{size_of(free)} free in the {name} '{place.folder.absolute()}'."
    if free < marks.low:
        meaning = explain(Reason.WAITING_FOR_DISK).meaning
        goes_on = f"Make room; downloads go on by themselves at {size_of(marks.high)}."
        judge = red if free < NO_SPACE_BYTES else yellow
        return judge("disk", f"{words} {meaning}", goes_on, subject=name)
    if free < PLENTY * marks.high:
        holds = f"Make room before downloads hold, at {size_of(marks.low)}."
        return yellow("disk", words, holds, subject=name)
    return green("disk", words, subject=name)

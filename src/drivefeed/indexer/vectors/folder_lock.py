"""The lock by which one process has an index folder."""

from __future__ import annotations

import fcntl
import time
from typing import TYPE_CHECKING, Any, Final

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from pathlib import Path

_LOCK_PATIENCE: Final = 3.0
"""Seconds to wait for a child process that lost its parent and is just ending."""


def locked(folder: Path) -> Any:
    """Return the open file that holds the lock until it is closed.

    Raises:
        NeedsAttention: another process has it.
    """
    file = (folder / "lock").open("w")
    deadline = time.monotonic() + _LOCK_PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                file.close()
                raise NeedsAttention(
                    f"Another process is using the vector index in {folder}. Stop it, or give "
                    "this one a data folder of its own; several machines share a Qdrant server.",
                    reason=Reason.MISCONFIGURED,
                ) from None
            time.sleep(0.05)
        else:
            return file

"""The end that always comes: whatever hangs is left behind, and no child outlives us.

An orderly end waits for threads that wait for a service, and for children that have to write. None
of that can be interrupted from the event loop, and nothing is lost without it: what was committed
is committed, and what was not is done again. So a thread of its own watches the clock.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from drivefeed.telemetry import log


class LastMoment:
    """Ends the process ``seconds`` after :meth:`begin`, if it is still there then."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def begin(self) -> None:
        """Start to watch the clock."""
        threading.Thread(target=self._watch, name="last moment", daemon=True).start()

    def _watch(self) -> None:
        threading.Event().wait(self._seconds)
        # The log may be what hangs.
        told = threading.Thread(target=self._tell, daemon=True)
        told.start()
        told.join(0.5)
        end_at_once(0)

    def _tell(self) -> None:
        log("daemon").warning(
            "ended_without_waiting",
            words="Something did not end in time. Nothing is lost: what was not committed is done "
            "again after the next start.",
            seconds=self._seconds,
        )


def end_at_once(code: int) -> NoReturn:
    """End this process now, with its children."""
    for child in _children():
        with suppress(OSError):
            os.kill(child, signal.SIGKILL)
    os._exit(code)


def _children() -> list[int]:
    """Return our children's ids; none where the kernel does not tell (they end by themselves)."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path("/proc/self/task").iterdir():
            with suppress(OSError, ValueError):
                found += map(int, (task / "children").read_text("ascii").split())
    return found

"""Looking at something again and again, in a thread, while a test does something else."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE_S = 0.1


class Watching:
    """Calls ``look`` all the time while it is open.

    Args:
        pause_s: between two calls.
    """

    def __init__(self, look: Callable[[], object], *, pause_s: float = _PAUSE_S) -> None:
        self._look = look
        self._pause_s = pause_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            self._look()
            self._stop.wait(self._pause_s)

"""Ctrl-C and SIGTERM: the first one ends in order, the second one at once."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.daemon import Daemon

_EXIT_AT_ONCE = 130


class Interrupts:
    """Cancels the present task on a signal, until a daemon is there that can end in order.

    Attributes:
        count: how many signals came.
        on_exit: called before an end at once; it must leave the terminal as it was.
    """

    def __init__(self) -> None:
        self.count = 0
        self.on_exit: Callable[[], None] = lambda: None
        self._task = asyncio.current_task()
        self._daemon: Daemon | None = None
        self._loop = asyncio.get_running_loop()

    def __enter__(self) -> Self:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(number, self._interrupted)
        return self

    def __exit__(self, *_: object) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            self._loop.remove_signal_handler(number)

    def end_with(self, daemon: Daemon) -> None:
        """From now on, a signal stops the daemon, and everything ends after it."""
        self._daemon = daemon

    def _interrupted(self) -> None:
        self.count += 1
        if self.count > 1:
            self.on_exit()
            os._exit(_EXIT_AT_ONCE)
        if self._daemon is not None:
            self._daemon.stop()
        elif self._task is not None:
            self._task.cancel()

"""Ctrl-C, SIGTERM and SIGHUP: the first one ends in order and in time, the second one at once."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Self

from drivefeed.cli import EXIT_INTERRUPTED
from drivefeed.cli.last_moment import LastMoment, end_at_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.daemon import Daemon

_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Interrupts:
    """Cancels the present task on a signal, until a daemon is there that can end in order.

    A SIGHUP that was ignored when we were started stays ignored: that is how ``nohup`` keeps a
    process when its terminal goes. A shell ignores SIGINT for what it starts in the background, and
    means nothing by it.

    Args:
        most_seconds: how long an end in order may take; after that it is cut short. None for as
            long as it takes.

    Attributes:
        count: how many signals came.
        on_exit: called before an end at once; it must leave the terminal as it was.
    """

    def __init__(self, *, most_seconds: float | None = None) -> None:
        self.count = 0
        self.on_exit: Callable[[], None] = lambda: None
        self._most_seconds = most_seconds
        self._task = asyncio.current_task()
        self._daemon: Daemon | None = None
        self._loop = asyncio.get_running_loop()
        kept = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        self._taken = [one for one in _SIGNALS if not (kept and one is signal.SIGHUP)]

    def __enter__(self) -> Self:
        for number in self._taken:
            self._loop.add_signal_handler(number, self._interrupted)
        return self

    def __exit__(self, *_: object) -> None:
        for number in self._taken:
            self._loop.remove_signal_handler(number)

    def end_with(self, daemon: Daemon) -> None:
        """From now on, a signal stops the daemon, and everything ends after it."""
        self._daemon = daemon

    def _interrupted(self) -> None:
        self.count += 1
        if self.count == 1:
            self._end_in_order()
        else:
            self.on_exit()
            end_at_once(EXIT_INTERRUPTED)

    def _end_in_order(self) -> None:
        if self._most_seconds is not None:
            LastMoment(self._most_seconds).begin()
        if self._daemon is not None:
            self._daemon.stop()
        elif self._task is not None:
            self._task.cancel()

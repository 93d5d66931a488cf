"""Single keys from a terminal, without Enter; where there is no terminal, none."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def single_keys(press: Callable[[str], None]) -> Iterator[bool]:
    """Call ``press`` on the event loop for each key, until the block ends.

    Output and Ctrl-C work as before; the terminal is put back as it was found. Yields whether
    there are keys: standard input must be a terminal, and we must be in its foreground.
    """
    fd = _foreground_terminal()
    if fd is None:
        yield False
        return
    import termios
    import tty

    before = termios.tcgetattr(fd)

    def enter() -> None:
        tty.setcbreak(fd, termios.TCSADRAIN)

    def read() -> None:
        for key in os.read(fd, 64).decode("utf-8", "ignore"):
            press(key)

    loop = asyncio.get_running_loop()
    enter()
    loop.add_reader(fd, read)
    # After Ctrl-Z and fg, the shell hands the terminal back in its own mode.
    loop.add_signal_handler(signal.SIGCONT, enter)
    try:
        yield True
    finally:
        loop.remove_reader(fd)
        loop.remove_signal_handler(signal.SIGCONT)
        with suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSADRAIN, before)


def _foreground_terminal() -> int | None:
    try:
        fd = sys.stdin.fileno()
        return fd if os.isatty(fd) and os.tcgetpgrp(fd) == os.getpgrp() else None
    except (AttributeError, OSError, ValueError):
        return None

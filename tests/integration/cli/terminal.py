"""A pseudo-terminal with a program on it: what is typed, and what is to be seen."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.forks import Fork

PATIENCE_S = 60.0
ROWS, COLUMNS = 40, 100
_CODES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")


def take_terminal() -> None:
    """Make the standard input, a terminal, the one of this session."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Terminal:
    """Starts a program on a terminal of its own and reads along.

    Attributes:
        seen: everything that was printed so far, without control codes.
    """

    def __init__(self, start: Callable[..., Fork], *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.before = termios.tcgetattr(theirs)
        self._theirs = theirs

        self.process = start(
            *arguments, stdin=theirs, stdout=theirs, stderr=theirs, preexec_fn=take_terminal
        )
        self.seen = ""

    @property
    def modes(self) -> list[Any]:
        """The terminal's settings as they are now."""
        return termios.tcgetattr(self._theirs)

    def press(self, key: str) -> None:
        os.write(self._ours, key.encode())

    def wait_for(self, pattern: str, *, since: int = 0) -> int:
        """Read until the pattern is to be seen; return how far everything was read by then."""
        deadline = time.monotonic() + PATIENCE_S
        while not re.search(pattern, self.seen[since:]):
            assert time.monotonic() < deadline, f"never seen: {pattern}\n{self.seen[-4000:]}"
            self._read(0.1)
        return len(self.seen)

    def wait_until_ended(self) -> int:
        deadline = time.monotonic() + PATIENCE_S
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it does not end:\n{self.seen[-4000:]}"
            self._read(0.1)
        self._read(0.1)
        return self.process.returncode

    def _read(self, seconds: float) -> None:
        ready, _, _ = select.select([self._ours], [], [], seconds)
        if ready:
            self.seen += _CODES.sub("", os.read(self._ours, 65_536).decode("utf-8", "replace"))

    def close(self) -> None:
        os.close(self._ours)
        os.close(self._theirs)

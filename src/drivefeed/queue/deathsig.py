"""Run as a script: ask the kernel to end us with our parent, then become another program.

``python -I -S deathsig.py PARENT_PID PROGRAM ARGUMENT…``

A function between fork and exec would do the same without a second start of Python, but may hang
in a process that has threads, which ours has. The signal is SIGKILL, since a server that hangs
obeys no other one; what it answered it has handed to the kernel, which still writes it.

The kernel looks at the *thread* that started us: the server also ends when that thread does, so it
is started from a thread that lives as long as the process. Systems other than Linux have no such
request; there the next start finds the orphan and stops it (see :mod:`drivefeed.queue.embedded`).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1  # <linux/prctl.h>


def main(arguments: list[str]) -> None:
    """Never returns: becomes the program, or exits where the parent is gone already."""
    parent, program = int(arguments[0]), arguments[1]
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before we asked
            sys.exit(1)
    os.execv(program, arguments[1:])  # noqa: S606  # no shell is wanted


if __name__ == "__main__":
    main(sys.argv[1:])

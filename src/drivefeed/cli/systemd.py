"""What systemd wants to hear from a service: that it is ready, that it ends, that it still turns.

The protocol, sd_notify(3), is one datagram of ``NAME=value`` lines to the socket that
``NOTIFY_SOCKET`` names. Without that variable nothing happens.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

READY = "READY=1\nSTATUS=Running"
STOPPING = "STOPPING=1\nSTATUS=Finishing running jobs"
TURNS = "WATCHDOG=1"
_MICROSECONDS = 1_000_000


class Systemd:
    """The service's line to systemd.

    Args:
        environment: where ``NOTIFY_SOCKET``, ``WATCHDOG_USEC`` and ``WATCHDOG_PID`` are looked up.
    """

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._address = environment.get("NOTIFY_SOCKET", "")
        self._watched = _watched(environment)

    def tell(self, words: str) -> None:
        """Send a message; a systemd that does not listen is no reason to stop."""
        if not self._address.startswith(("/", "@")):
            return
        # "@" stands for the NUL byte of an abstract socket.
        address = self._address.replace("@", "\0", 1) if self._address[0] == "@" else self._address
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as line:
            line.settimeout(1.0)
            line.sendto(words.encode(), address)

    async def keep_telling(self) -> None:
        """Tell twice in each period that the event loop turns; returns where nobody watches."""
        if self._watched is None or not self._address:
            return
        while True:
            self.tell(TURNS)
            await asyncio.sleep(self._watched / 2)


def _watched(environment: Mapping[str, str]) -> float | None:
    """Return within how many seconds systemd wants to hear from us, or None."""
    mine = environment.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
    period = environment.get("WATCHDOG_USEC", "")
    return int(period) / _MICROSECONDS if mine and period.isdigit() and int(period) else None

"""The real clock and the real source of ids; the only places that ask the operating system."""

from __future__ import annotations

import asyncio
import random
import sys
import time
import uuid

_TURN_SECONDS = 0.0005


def take_short_turns() -> None:
    """Have the threads of this process take turns ten times as often as Python would.

    After each look at the network the event loop waits for its turn while another thread computes,
    5 ms by default. A page of a listing takes some dozens of such looks: pages came up to a third
    sooner with this.
    """
    sys.setswitchinterval(_TURN_SECONDS)


class SystemClock:
    """The time of this machine."""

    def now(self) -> int:
        """Return milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class SystemIds:
    """Fresh ids and randomness of this machine."""

    def new(self) -> str:
        """Return a fresh UUID."""
        return str(uuid.uuid4())  # noqa: TID251 - this is the port's implementation

    def fraction(self) -> float:
        """Return a random number in [0, 1)."""
        return random.random()  # noqa: S311, TID251 - jitter is no secret


def no_checkpoint(name: str) -> None:
    """Pass a checkpoint in production, where nobody kills us on purpose."""
    del name

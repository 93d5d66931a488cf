"""The real clock and the real source of ids; the only places that ask the operating system."""

from __future__ import annotations

import asyncio
import random
import time
import uuid


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

"""Time and ids that a test turns by hand."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass, field
from uuid import UUID

NOON = 1_800_000_000_000
"""An instant for tests to start at, in milliseconds since the epoch."""


class ManualClock:
    """A clock that stands still until it is turned."""

    def __init__(self, now: int = NOON) -> None:
        self._now = now
        self._sleepers: list[tuple[int, asyncio.Event]] = []

    def now(self) -> int:
        """Return the instant to which the clock was turned."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Return when the clock was turned far enough."""
        until = self._now + round(seconds * 1000)
        if until <= self._now:
            await asyncio.sleep(0)
            return
        woken = asyncio.Event()
        self._sleepers.append((until, woken))
        await woken.wait()

    def turn(self, *, ms: int = 0, seconds: float = 0, days: float = 0) -> int:
        """Turn the clock forward, wake who has slept long enough, and return the new instant."""
        self._now += ms + round(seconds * 1000) + round(days * 24 * 3600 * 1000)
        for until, woken in self._sleepers:
            if until <= self._now:
                woken.set()
        self._sleepers = [one for one in self._sleepers if not one[1].is_set()]
        return self._now


@dataclass
class CountedIds:
    """Ids that count up, and fractions from a seed: every run of a test has the same."""

    seed: int = 1
    _count: int = 0
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def new(self) -> str:
        """Return the next id, in the form of a UUID."""
        self._count += 1
        return str(UUID(int=(self.seed << 64) + self._count))

    def begin_again(self, seed: int) -> None:
        """Be as if made with this seed just now."""
        self.seed, self._count = seed, 0
        self._random.seed(seed)

    def fraction(self) -> float:
        """Return the next number in [0, 1) of the seed."""
        return self._random.random()


def no_checkpoint(name: str) -> None:
    """Pass the place ``name``; nobody is killed."""

"""The gate in front of Microsoft Graph: one for each app in a tenant, as Microsoft counts.

Microsoft prices requests in resource units (RU) and allows an app 1,250 of them a minute in the
smallest tenants (SharePoint's throttling page, October 2025). A gate spends a share of that, lets
the more urgent lane go first, and, once Microsoft asks one request to wait, holds back all of
them: requests made meanwhile are counted too and make the wait longer.
"""

from __future__ import annotations

import asyncio
import heapq
from enum import IntEnum
from itertools import count
from typing import TYPE_CHECKING, Protocol

from drivefeed.domain.errors import Throttled

if TYPE_CHECKING:
    from drivefeed.ports import Clock, Ids

COST_ONE = 1
"""RU of a single item, of delta with a token, and of a download."""
COST_MANY = 2
"""RU of a query for many items, such as delta without a token."""
COST_PERMISSIONS = 5
"""RU of anything that reads permissions."""

SMALLEST_ALLOWANCE = 1250
"""RU a minute for an app in a tenant of up to 1,000 licences."""
BRIEF = 5.0
"""Seconds a request waits inside the gate; a longer closure is raised, so no slot is held."""
_FIRST_GUESS = 5.0
_LAST_GUESS = 120.0


class Lane(IntEnum):
    """Who goes first when the budget is short."""

    CHANGES = 0
    RETRIES = 1
    BACKFILL = 2
    VERIFY = 3


class Gate(Protocol):
    """Decides when a request may be sent. One that lives in Redis would have the same shape."""

    async def enter(self, cost: int, lane: Lane, *, patience: float = BRIEF) -> None:
        """Wait until ``cost`` RU may be spent.

        Args:
            cost: RU of the request.
            lane: how urgent it is.
            patience: seconds the caller would rather wait here than be sent away.

        Raises:
            Throttled: Microsoft asked to wait longer than ``patience``; nothing was spent.
        """
        ...

    async def close(self, told: float | None) -> float:
        """Hold everything back after an answer 429 or 503.

        Args:
            told: seconds Microsoft asked for; None where it did not say, which doubles the wait
                from time to time, up to two minutes.

        Returns:
            Seconds until the gate opens again.
        """
        ...

    async def passed(self) -> None:
        """Record that a request went through, so that the next guess starts small again."""
        ...


class LocalGate:
    """A gate for one process."""

    def __init__(
        self, clock: Clock, ids: Ids, *, allowance: int = SMALLEST_ALLOWANCE, share: float = 0.8
    ) -> None:
        """Open a gate.

        Args:
            clock: tells the time and waits.
            ids: jitter for waits that Microsoft did not name.
            allowance: RU a minute that Microsoft grants.
            share: the part of it to spend in the long run. What is left over is the burst, so
                that no minute ever exceeds the allowance.
        """
        self._clock = clock
        self._ids = ids
        self._rate = allowance * share / 60
        self._burst = max(float(COST_PERMISSIONS), min(allowance * (1 - share), 10 * self._rate))
        self._tokens = self._burst
        self._filled_at = clock.now()
        self._opens_at = 0
        self._guesses = 0
        self._line: list[tuple[int, int]] = []
        self._turn: dict[tuple[int, int], asyncio.Event] = {}
        self._numbers = count()

    async def enter(self, cost: int, lane: Lane, *, patience: float = BRIEF) -> None:
        """Wait for our turn; see :class:`Gate`."""
        ticket = (int(lane), next(self._numbers))
        heapq.heappush(self._line, ticket)
        self._turn[ticket] = asyncio.Event()
        try:
            while True:
                closed = self._closed_for()
                if closed > patience:
                    raise Throttled(
                        "Microsoft asked this app to slow down; the request was not sent and "
                        f"goes on in {closed:.0f} seconds.",
                        seconds=closed,
                    )
                if self._line[0] != ticket:
                    self._turn[ticket].clear()
                    await self._turn[ticket].wait()
                elif (wait := max(closed, self._short_for(cost))) > 0:
                    await self._clock.sleep(wait)
                else:
                    self._tokens -= cost
                    return
        finally:
            self._leave(ticket)

    async def close(self, told: float | None) -> float:
        """Close the gate; see :class:`Gate`."""
        if told is None and self._closed_for() <= 0:
            # Only the first of several refusals in flight counts as a new guess.
            guess = min(_FIRST_GUESS * 2**self._guesses, _LAST_GUESS)
            self._guesses += 1
            told = guess * (0.5 + self._ids.fraction() / 2)
        if told is not None:
            self._opens_at = max(self._opens_at, self._clock.now() + round(told * 1000))
            self._call_all()
        return max(self._closed_for(), 0.0)

    async def passed(self) -> None:
        """Forget earlier guesses; see :class:`Gate`."""
        if self._closed_for() <= 0:
            self._guesses = 0

    def _closed_for(self) -> float:
        return (self._opens_at - self._clock.now()) / 1000

    def _short_for(self, cost: int) -> float:
        """Fill the bucket up to now and return the seconds until ``cost`` is in it."""
        now = self._clock.now()
        if now > self._filled_at:
            earned = (now - self._filled_at) / 1000 * self._rate
            self._tokens = min(self._burst, self._tokens + earned)
        self._filled_at = now
        missing = min(cost, self._burst) - self._tokens
        # The clock counts milliseconds; less than one would be slept for ever.
        return max(missing / self._rate, 0.001) if missing > 0 else 0.0

    def _leave(self, ticket: tuple[int, int]) -> None:
        del self._turn[ticket]
        self._line.remove(ticket)
        heapq.heapify(self._line)
        if self._line:
            self._turn[self._line[0]].set()

    def _call_all(self) -> None:
        for turn in self._turn.values():
            turn.set()

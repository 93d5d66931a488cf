"""Waiting for one's turn: the gate over a book."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING

from drivefeed.domain.budget import Budget, Lane
from drivefeed.domain.errors import Throttled
from drivefeed.sources.graph.budget import BRIEF, SMALLEST_ALLOWANCE, Ticket
from drivefeed.sources.graph.budget_book import LocalBook

if TYPE_CHECKING:
    from drivefeed.domain.budget import Remaining
    from drivefeed.ports import Clock, Ids
    from drivefeed.sources.graph.budget import Book, Count, Verdict


class BookedGate:
    """Lets the requests of this process ask a book, one of each lane at a time.

    Attributes:
        book: may be replaced at any time; who waits asks the new one.
    """

    def __init__(self, book: Book, clock: Clock, ids: Ids) -> None:
        """Open a gate.

        Args:
            book: what may be spent.
            clock: waits.
            ids: names of tickets, and jitter for waits that Microsoft did not name.
        """
        self.book = book
        self._clock = clock
        self._ids = ids
        self._name = ids.new()
        self._count = 0
        self._lines: dict[Lane, deque[asyncio.Event]] = {lane: deque() for lane in Lane}
        self._opens_at = 0
        self._throttled_ms = 0

    @property
    def throttled_ms(self) -> int:
        """See :class:`drivefeed.sources.graph.budget.Gate`."""
        return self._throttled_ms

    async def enter(self, cost: int, lane: Lane, *, patience: float = BRIEF) -> None:
        """Wait for our turn; see :class:`drivefeed.sources.graph.budget.Gate`."""
        line, turn = self._lines[lane], asyncio.Event()
        line.append(turn)
        self._count += 1
        ticket = Ticket(f"{self._name}/{self._count}", lane, cost)
        asked: Book | None = None
        try:
            while True:
                closed = self._closed_for()
                if closed > patience:
                    raise _sent_away("closed", closed)
                if line[0] is not turn:
                    turn.clear()
                    await turn.wait()
                    continue
                ticket.behind = len(line)
                book = self.book
                asked = book
                verdict = await book.ask(ticket)
                self._throttled_ms = verdict.throttled_ms
                if verdict.go:
                    asked = None
                    return
                ticket.since = verdict.since
                wait = verdict.wait_ms / 1000
                if verdict.why != "line":
                    asked = None
                    self._note(verdict)
                    if wait > patience:
                        raise _sent_away(verdict.why, wait)
                await self._clock.sleep(wait)
        finally:
            line.remove(turn)
            if line:
                line[0].set()
            if asked is not None:
                await asyncio.shield(asked.leave(ticket))

    async def close(self, told: float | None) -> float:
        """Close the gate; see :class:`drivefeed.sources.graph.budget.Gate`."""
        told_ms = None if told is None else round(told * 1000)
        closed = await self.book.close(told_ms, self._ids.fraction())
        if closed > 0:
            self._shut(closed)
        return closed / 1000

    async def passed(self, told: Remaining | None = None) -> None:
        """Forget earlier guesses; see :class:`drivefeed.sources.graph.budget.Gate`."""
        if self._throttled_ms or told is not None or self._opens_at:
            await self.book.passed(told)
            if self._closed_for() <= 0:
                self._throttled_ms = self._opens_at = 0

    async def count(self) -> Count:
        """See :class:`drivefeed.sources.graph.budget.Gate`."""
        found = await self.book.count()
        self._throttled_ms = found.throttled_ms
        return found

    def _closed_for(self) -> float:
        return (self._opens_at - self._clock.now()) / 1000

    def _note(self, verdict: Verdict) -> None:
        """Remember a closure; a lane whose part of the day is used up holds no other back."""
        if verdict.why == "closed":
            self._shut(verdict.wait_ms)

    def _shut(self, wait_ms: int) -> None:
        """Remember a closure, and call everybody in line to look whether they stay for it."""
        self._opens_at = max(self._opens_at, self._clock.now() + wait_ms)
        for line in self._lines.values():
            for turn in line:
                turn.set()


def _sent_away(why: str, seconds: float) -> Throttled:
    if why == "day":
        return Throttled(
            "What drivefeed may ask Microsoft for in a day is used up; the request was not sent "
            f"and goes on in {max(1, round(seconds / 60))} minutes.",
            seconds=seconds,
        )
    return Throttled(
        "Microsoft asked this app to slow down; the request was not sent and goes on in "
        f"{seconds:.0f} seconds.",
        seconds=seconds,
    )


class LocalGate(BookedGate):
    """A gate for one process."""

    def __init__(
        self, clock: Clock, ids: Ids, *, allowance: int = SMALLEST_ALLOWANCE, share: float = 0.8
    ) -> None:
        """Open a gate.

        Args:
            clock: tells the time and waits.
            ids: jitter for waits that Microsoft did not name.
            allowance: RU a minute that Microsoft grants.
            share: the part of it to spend in the long run.
        """
        super().__init__(LocalBook(Budget(allowance, share=share), clock), clock, ids)

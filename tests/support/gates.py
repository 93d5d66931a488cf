"""Gates of both kinds on a clock that a test turns, and a way to know that nobody is on the way."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from drivefeed.domain.budget import Budget, Lane
from drivefeed.queue.script import RedisScript
from drivefeed.sources.graph.budget_book import LocalBook
from drivefeed.sources.graph.budget_gate import BookedGate
from drivefeed.sources.graph.budget_shared import SharedBook, script_text
from support.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from drivefeed.ports import Clock
    from drivefeed.sources.graph.budget import Book


class HalfIds:
    """Names that count up, and always the same jitter."""

    def __init__(self) -> None:
        self._count = 0

    def new(self) -> str:
        self._count += 1
        return f"gate-{self._count}"

    def fraction(self) -> float:
        return 0.5


class WatchedBook:
    """Counts how many ask right now; everything else is the inner book's."""

    def __init__(self, inner: Book) -> None:
        self.inner = inner
        self.asking = 0
        self.calls = 0

    @property
    def budget(self) -> Budget:
        return self.inner.budget

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.inner, name)

        async def call(*args: Any) -> Any:
            self.asking += 1
            self.calls += 1
            try:
                return await method(*args)
            finally:
                self.asking -= 1

        return call


class Works:
    """Makes gates over one budget, on one clock.

    Args:
        url: of the Valkey in which the gates share the budget; None for a book in memory.
    """

    def __init__(self, url: str | None) -> None:
        self.url = url
        self.clock = ManualClock()
        self.ids = HalfIds()
        self.books: list[WatchedBook] = []
        self.scripts: list[RedisScript] = []

    def book(self, budget: Budget, *, clock: Clock | None = None, member: str = "") -> Book:
        at = clock or self.clock
        if self.url is None:
            return LocalBook(budget, at)
        script = RedisScript(self.url, script_text())
        self.scripts.append(script)
        return SharedBook(
            budget,
            script,
            name="test:graph:tenant:app",
            member=member or self.ids.new(),
            clock=at,
            follows_clock=True,
        )

    def gate(
        self, allowance: int = 1250, share: float = 0.8, *, day: int = 0, clock: Clock | None = None
    ) -> BookedGate:
        watched = WatchedBook(self.book(Budget(allowance, day, share), clock=clock))
        self.books.append(watched)
        return BookedGate(watched, clock or self.clock, self.ids)

    async def settle(self) -> None:
        """Return when everybody who can go on has."""
        calm = 0
        while calm < 3:
            before = sum(book.calls for book in self.books)
            for _ in range(10):
                await asyncio.sleep(0)
            while any(book.asking for book in self.books):  # noqa: ASYNC110 (nobody can tell us)
                await asyncio.sleep(0.001)
            calm = calm + 1 if sum(book.calls for book in self.books) == before else 0

    async def turn(self, seconds: float, step: float = 0.05) -> None:
        """Let time pass, in steps in which everybody comes to their turn."""
        end = self.clock.now() + round(seconds * 1000)
        while (left := end - self.clock.now()) > 0:
            self.clock.turn(ms=min(round(step * 1000), left))
            await self.settle()

    async def until(self, is_so: Callable[[], bool], *, most: float) -> None:
        """Let time pass until something is so."""
        end = self.clock.now() + round(most * 1000)
        await self.settle()
        while not is_so():
            assert self.clock.now() < end, "it does not become so"
            await self.turn(0.05)

    async def rest(self, gate: BookedGate) -> None:
        """Let the bucket fill up."""
        await gate.enter(0, Lane.CHANGES)
        self.clock.turn(seconds=120)

    async def drain(self, gate: BookedGate) -> int:
        """Spend the burst, and return how many units it was."""
        went = 0

        async def greedy() -> None:
            nonlocal went
            while True:
                await gate.enter(1, Lane.CHANGES)
                went += 1

        asked = asyncio.create_task(greedy())
        await self.settle()
        asked.cancel()
        await asyncio.wait({asked})
        return went

    async def aclose(self) -> None:
        for script in self.scripts:
            await script.aclose()


@asynccontextmanager
async def works_of(url: str | None) -> AsyncIterator[Works]:
    works = Works(url)
    try:
        yield works
    finally:
        await works.aclose()

"""Time, fresh ids, and named places in the code: what a process is surrounded by."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """The only way to ask for the time, so that tests can turn it by hand."""

    def now(self) -> int:
        """Return milliseconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait; a manual clock returns when it was turned far enough."""
        ...


class Ids(Protocol):
    """The only way to ask for fresh ids and randomness."""

    def new(self) -> str:
        """Return a fresh UUID in its 36-character form."""
        ...

    def fraction(self) -> float:
        """Return a random number in [0, 1), for jitter."""
        ...


class Checkpoint(Protocol):
    """A named place where a test may kill the process. Inert in production."""

    def __call__(self, name: str) -> None:
        """Pass the place ``name``."""
        ...

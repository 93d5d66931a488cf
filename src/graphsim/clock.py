"""Time as graphsim sees it: a test may turn it by hand."""

from __future__ import annotations

import datetime as dt
import time
from typing import Protocol


class Clock(Protocol):
    """Where graphsim asks for the time. Certificates alone use the real one."""

    def now(self) -> float:
        """Return seconds since the Unix epoch."""
        ...


class SystemClock:
    """The machine's own time."""

    def now(self) -> float:
        """Return seconds since the Unix epoch."""
        return time.time()  # noqa: TID251 - this is the port behind which the real clock stands


class ManualClock:
    """A clock that only moves when told to, for URL and token expiry in virtual time."""

    def __init__(self, start: float = 1_790_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        """Return the virtual time in seconds since the Unix epoch."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move the clock forward by ``seconds``."""
        self._now += seconds


class ServerClock:
    """The clock of the simulated service: that of the test, ahead by ``skew`` seconds."""

    def __init__(self, inner: Clock) -> None:
        self.inner = inner
        self.skew = 0.0

    def now(self) -> float:
        """Return seconds since the Unix epoch, as the service believes."""
        return self.inner.now() + self.skew


def iso(seconds: float, *, fraction: bool = False) -> str:
    """Format an epoch time as Graph does: UTC with ``Z``, milliseconds on request."""
    moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    text = moment.isoformat(timespec="milliseconds" if fraction else "seconds")
    return text.replace("+00:00", "Z")


def parse_iso(text: str) -> float | None:
    """Return the epoch seconds of an ISO 8601 time, or ``None`` where it is none."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)).timestamp()

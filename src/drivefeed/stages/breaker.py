"""Breakers: while a part is down, its stages wait together instead of failing one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from drivefeed.domain.errors import Part
from drivefeed.domain.reasons import Reason
from drivefeed.domain.retry import backoff_ms
from drivefeed.telemetry import BREAKER_OPEN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drivefeed.ports import Clock, Ids

HOLDS = {
    Part.SOURCE: Reason.WAITING_FOR_SOURCE,
    Part.STORE: Reason.WAITING_FOR_STORE,
    Part.BACKEND: Reason.WAITING_FOR_BACKEND,
    Part.INDEX: Reason.WAITING_FOR_INDEX,
    Part.QUEUE: Reason.WAITING_FOR_QUEUE,
    Part.CATALOG: Reason.WAITING_FOR_CATALOG,
}


NOTED_MS = 8_000
"""How long a part is shown as down that was noted: longer than the time between two tries."""


@dataclass(slots=True)
class _State:
    trips: int = 0
    open_until: int = 0
    words: str = ""


class Breakers:
    """One breaker per part: trips open it for longer and longer, a success closes it.

    Args:
        others: what has breakers of its own and is down, by name, with the last words about each.
    """

    def __init__(
        self, clock: Clock, ids: Ids, *, others: Callable[[], Mapping[str, str]] = dict
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._others = others
        self._states = {part: _State() for part in Part}

    def wait_ms(self, part: Part) -> int:
        """Return how long the part is still considered down; 0 when it may be tried."""
        state = self._states[part]
        left = state.open_until - self._clock.now()
        if left <= 0:
            return 0
        # Spread the return, so that a part that comes back is not met by everybody at once.
        return left + int(self._ids.fraction() * 500)

    def words(self, part: Part) -> str:
        """Return what the part was last seen to suffer from."""
        return self._states[part].words

    def trip(self, part: Part, words: str) -> int:
        """The part did not answer: open, and return for how many milliseconds."""
        state = self._states[part]
        now = self._clock.now()
        if state.open_until <= now:
            state.trips += 1
        wait = backoff_ms(
            state.trips, fraction=self._ids.fraction(), first_ms=1_000, longest_ms=30_000
        )
        state.open_until = max(state.open_until, now + wait)
        state.words = words
        BREAKER_OPEN.labels(part).set(1)
        return max(state.open_until - now, 1)

    def note(self, part: Part, words: str) -> None:
        """The part failed somewhere and may work elsewhere: show it, and let nothing wait for it.

        A full disk takes small writes for a long time after it refused large ones.
        """
        state = self._states[part]
        state.trips = max(state.trips, 1)
        state.open_until = self._clock.now() + NOTED_MS
        state.words = words
        BREAKER_OPEN.labels(part).set(1)

    def calm(self, part: Part) -> None:
        """The part answered somewhere: it is well unless it was noted lately."""
        if self._states[part].open_until <= self._clock.now():
            self.close(part)

    def close(self, part: Part) -> None:
        """The part answered."""
        state = self._states[part]
        if state.trips:
            state.trips = 0
            state.open_until = 0
            state.words = ""
            BREAKER_OPEN.labels(part).set(0)

    def open_parts(self) -> dict[str, str]:
        """Return what is considered down, by its name, with the last words about each."""
        down = {part.value: state.words for part, state in self._states.items() if state.trips}
        return down | dict(self._others())

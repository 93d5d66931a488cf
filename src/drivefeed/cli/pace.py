"""How fast files come to an end now, and how long the rest will take. Pure."""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOW_SECONDS: Final = 10.0
_LEAST_FILES: Final = 3
"""Fewer ended files in the window tell no time to come."""
_LEAST_SECONDS: Final = 1.0


class Pace:
    """Counts files that ended, in a window of the last seconds.

    The average since the start would go on claiming speed while nothing moves any more.
    """

    def __init__(self) -> None:
        self._looks: deque[tuple[float, int]] = deque()
        self._ended: int | None = None
        self._total = 0

    def look(self, now: float, ended: int) -> None:
        """Take how many files are at an end at ``now`` (seconds of any steady clock).

        A number that falls (files were edited or removed) is no progress backwards.
        """
        if self._ended is not None:
            self._total += max(0, ended - self._ended)
        self._ended = ended
        self._looks.append((now, self._total))
        while len(self._looks) > 2 and self._looks[1][0] <= now - WINDOW_SECONDS:  # noqa: PLR2004 - both ends of the window
            self._looks.popleft()

    @property
    def files_a_second(self) -> float:
        """Files that ended in the window, by its length."""
        seconds, files = self._span()
        return files / seconds if seconds >= _LEAST_SECONDS else 0.0

    def seconds_left(self, files: int) -> float | None:
        """Return how long ``files`` will take at this pace, or None where it tells nothing."""
        seconds, ended = self._span()
        if files <= 0 or ended < _LEAST_FILES or seconds < _LEAST_SECONDS:
            return None
        return files * seconds / ended

    def _span(self) -> tuple[float, int]:
        if not self._looks:
            return 0.0, 0
        (since, before), (now, after) = self._looks[0], self._looks[-1]
        return now - since, after - before

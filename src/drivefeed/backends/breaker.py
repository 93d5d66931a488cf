"""A breaker of one backend: while it is down, its files wait, and those of others go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from drivefeed.domain.errors import Part, PartDown
from drivefeed.domain.retry import backoff_ms
from drivefeed.telemetry import BREAKER_OPEN

if TYPE_CHECKING:
    from drivefeed.ports import Clock, Ids

FAULTS_IN_A_ROW: Final = 3
"""So many faults in a row, for whatever files, are the backend's and no accident of one."""
_LOST_AGAIN_MS: Final = 1_000


class Breaker:
    """Trips open it for longer and longer, from one to thirty seconds; a success closes it."""

    def __init__(self, clock: Clock, ids: Ids, name: str) -> None:
        self._open = BREAKER_OPEN.labels(f"backend '{name}'")
        self._clock = clock
        self._ids = ids
        self._trips = 0
        self._faults = 0
        self._open_until = 0
        self._words = ""
        self._asked_at = 0

    @property
    def words(self) -> str:
        """What the backend was last seen to suffer from; empty while it is considered well."""
        return self._words

    @property
    def idle_ms(self) -> int:
        """How long it was not asked for anything."""
        return self._clock.now() - self._asked_at

    def require_closed(self) -> None:
        """Pass while the backend may be asked.

        Raises:
            PartDown: it is considered down, for ``wait_ms`` more.
        """
        now = self._clock.now()
        left = self._open_until - now
        if left > 0:
            # Spread the return, so that it is not met by everybody at once.
            wait = left + int(self._ids.fraction() * 500)
            raise PartDown(self._words, part=Part.BACKEND, wait_ms=wait)
        self._asked_at = now

    def down(self, words: str, *, least_ms: int = 0) -> PartDown:
        """Open it, and return what to raise.

        Args:
            least_ms: how long the backend asked to be left alone.
        """
        now = self._clock.now()
        if self._open_until <= now:
            self._trips += 1
        wait = backoff_ms(
            self._trips, fraction=self._ids.fraction(), first_ms=1_000, longest_ms=30_000
        )
        self._open_until = max(self._open_until, now + max(wait, least_ms))
        self._words = words
        self._open.set(1)
        return PartDown(words, part=Part.BACKEND, wait_ms=max(self._open_until - now, 1))

    def lost(self, words: str) -> PartDown:
        """A reply got lost on its way: one file waits a moment; the third in a row opens it."""
        if self.fault():
            return self.down(words)
        return PartDown(words, part=Part.BACKEND, wait_ms=_LOST_AGAIN_MS)

    def fault(self) -> bool:
        """Count what may be an accident; True where it is one no longer."""
        self._faults += 1
        return self._faults >= FAULTS_IN_A_ROW

    def answered(self) -> None:
        """It answered as it should: close it."""
        if self._words:
            self._open.set(0)
        self._trips = self._faults = self._open_until = 0
        self._words = ""

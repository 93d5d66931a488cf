"""The database's clock, followed without a question: every writing transaction tells its time.

Claims, heartbeats and leases of many machines are compared with each other, so all of them are
told by one clock. A machine whose own clock is wrong neither loses its work to others nor takes
theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from drivefeed.ports import Clock


class DatabaseClock:
    """The machine's clock, set right by what the database tells.

    Attributes:
        own: the machine's clock, which measures the time between two tellings.
    """

    def __init__(self, own: Clock) -> None:
        self.own = own
        self._ahead_ms: int | None = None

    def now(self) -> int:
        """Return the database's time, as well as it is known."""
        return self.own.now() + (self._ahead_ms or 0)

    async def sleep(self, seconds: float) -> None:
        """Wait on the machine's clock."""
        await self.own.sleep(seconds)

    @property
    def ahead_ms(self) -> int:
        """How far the database's clock is ahead of the machine's."""
        return self._ahead_ms or 0

    def told(self, instant: int, *, asked_at: int) -> None:
        """Take over what the database's clock showed between ``asked_at`` and now.

        What fits to it already stays, so that a slow answer does not make the time jump.
        """
        least, most = instant - self.own.now(), instant - asked_at
        if self._ahead_ms is None:
            self._ahead_ms = (least + most) // 2
        self._ahead_ms = min(max(self._ahead_ms, least), most)

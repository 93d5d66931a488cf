"""What delta does not show yet: earlier states of items, and until when they stand in for later.

Clients report that delta lags the item's own address by 5 to 60 seconds and more, that a poll
within that time may be told nothing and given a new token, and that a removal was never told.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphsim.clock import Clock
    from graphsim.items import Item

_KEPT = 8


class Lateness:
    """The changes of one drive that delta shows later than they happened.

    Args:
        clock: Decides what is visible.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._earlier: dict[str, list[Item]] = {}
        self._hidden: dict[str, float] = {}
        self.delay = 0.0
        """Seconds until delta shows any change."""

    def note(self, replaced: Item | None) -> None:
        """Keep the state that a change has replaced."""
        if replaced is not None:
            states = self._earlier.setdefault(replaced.id, [])
            states.append(replaced)
            del states[:-_KEPT]

    def hide(self, identifier: str, seconds: float) -> None:
        """Show the latest change of an item only after so many seconds."""
        self._hidden[identifier] = self._clock.now() + seconds

    def earlier(self, identifier: str) -> Item | None:
        """Return the state before the latest one; null for an item that never changed."""
        states = self._earlier.get(identifier)
        return states[-1] if states else None

    def hidden_ids(self) -> set[str]:
        """Return the items of which :meth:`hide` holds the latest change back."""
        now = self._clock.now()
        self._hidden = {one: until for one, until in self._hidden.items() if until > now}
        return set(self._hidden)

    def visible(self, item: Item) -> Item | None:
        """Return the state of an item that delta shows now; null for one it does not know."""
        now = self._clock.now()
        if self._hidden.get(item.id, 0.0) <= now and self._is_old(item, now):
            return item
        for state in reversed(self._earlier.get(item.id, ())):
            if self._is_old(state, now):
                return state
        return None

    def _is_old(self, item: Item, now: float) -> bool:
        is_root = item.parent_id is None
        return is_root or self.delay <= 0 or item.changed_at + self.delay <= now

"""Who tried wrong keys too often. In this process alone, and of bounded size."""

from __future__ import annotations

import hashlib
import math
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_WINDOW_SECONDS: Final = 60.0
_MOST_WRONG: Final = 10
_MOST_ADDRESSES: Final = 1_000
_MOST_KNOWN: Final = 1_000


class WrongKeys:
    """Counts wrong keys by address; ten within a minute, and it waits until the minute is over.

    A key that was right before is still looked up, so that a guest who tries keys locks nobody out
    who shares the address.

    Args:
        now: seconds of a steady clock.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._wrong: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def seconds_to_wait(self, address: str, text: str) -> int:
        """Return how long this key is not looked up from this address; 0 for not at all."""
        since, count = self._wrong.get(address, (0.0, 0))
        left = since + _WINDOW_SECONDS - self._now()
        if count < _MOST_WRONG or left <= 0 or _digest(text) in self._known:
            return 0
        return math.ceil(left)

    def was_wrong(self, address: str) -> None:
        """Count a wrong key."""
        now = self._now()
        since, count = self._wrong.pop(address, (now, 0))
        if since + _WINDOW_SECONDS <= now:
            since, count = now, 0
        self._wrong[address] = (since, count + 1)
        if len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)

    def was_right(self, text: str) -> None:
        """Remember a key that let somebody in."""
        self._known[_digest(text)] = None
        self._known.move_to_end(_digest(text))
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()

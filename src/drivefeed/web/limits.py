"""Who tried wrong keys too often. In this process alone, and of bounded size."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

_WINDOW_SECONDS: Final = 60.0
_MOST_WRONG: Final = 10
_MOST_ADDRESSES: Final = 1_000


class WrongKeys:
    """Counts wrong keys by address: after ten within a minute, further ones are told to wait.

    Right ones are let in all the same. Behind a reverse proxy one address is everybody's, and a
    key of 256 random bits is found by nobody who tries, so waiting is for programs that go on
    with a key that ended.

    Args:
        now: seconds of a steady clock.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._wrong: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def seconds_to_wait(self, address: str) -> int:
        """Return how long whoever sent a wrong key from this address shall wait; 0 for not."""
        since, count = self._wrong.get(address, (0.0, 0))
        left = since + _WINDOW_SECONDS - self._now()
        return 0 if count < _MOST_WRONG or left <= 0 else math.ceil(left)

    def was_wrong(self, address: str) -> None:
        """Count a wrong key."""
        now = self._now()
        since, count = self._wrong.pop(address, (now, 0))
        if since + _WINDOW_SECONDS <= now:
            since, count = now, 0
        self._wrong[address] = (since, count + 1)
        if len(self._wrong) > _MOST_ADDRESSES:
            self._wrong.popitem(last=False)

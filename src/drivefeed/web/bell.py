"""Words about changes, gathered: ten thousand calls make one look at a drive, one more later."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from drivefeed.catalog.sources import wake_due_drives
from drivefeed.catalog.subscriptions import note_told, subscription_by_id, want_renewal
from drivefeed.domain.errors import PartDown
from drivefeed.domain.subscription import Subscription, is_secret
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drivefeed.catalog.engine import Catalog

_GATHER_SECONDS: Final = 0.2
_APART_SECONDS: Final = 1.0
"""Between two writings, whatever is heard meanwhile."""
FLOOD: Final = 20
"""More words than these about one drive in the second after it was written are no news of it."""
HOLD_SECONDS: Final = 40.0
"""So long a flood causes no second look; the last of its words is written then, so that a change
of which it told waits no longer than for the look that follows every word anyway."""
_AGAIN_SECONDS: Final = 2.0
_KNOWN_SECONDS: Final = 10.0
_MOST_KNOWN: Final = 10_000
_LOG_SECONDS: Final = 60.0

_log = log("notifications")


class Bell:
    """Hears calls and makes drives due.

    Which subscriptions there are is remembered for a while, so that a flood of calls asks the
    catalog nothing.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._known: OrderedDict[str, tuple[float, Subscription | None]] = OrderedDict()
        self._words: Counter[str] = Counter()
        """How often each drive was told of and not yet written."""
        self._told: dict[str, float] = {}
        """When each drive was written last, by the monotonic clock; for as long as it counts."""
        self._before: set[str] = set()
        """Of which drives there were words a moment ago, without a pause since."""
        self._renewals: set[str] = set()
        self._rung = asyncio.Event()
        self._forged = 0
        self._logged_at = -_LOG_SECONDS

    async def knows(self, subscription_id: str) -> bool:
        """Whether there is such a subscription of ours."""
        return await self._find(subscription_id) is not None

    async def hear(self, subscription_id: str, shown: Iterable[object]) -> bool:
        """Take a call; False where no part of it shows the word of the subscription.

        Args:
            shown: the ``clientState`` of each notification in it.
        """
        one = await self._find(subscription_id)
        # All are compared, so that the time tells nothing.
        fits = [is_secret(word, one.secret_hash if one else "") for word in shown]
        if one is None or not any(fits):
            self._note_forged(subscription_id)
            return False
        self._words[one.drive_id] += 1
        self._rung.set()
        return True

    def want_renewal(self, subscription_id: str) -> None:
        """Note that Microsoft asked for a renewal."""
        self._renewals.add(subscription_id)
        self._rung.set()

    async def run(self) -> None:
        """Write what was heard, until cancelled."""
        while True:
            await self._next()
            await asyncio.sleep(_GATHER_SECONDS)
            self._rung.clear()
            try:
                await self._write()
            except PartDown:
                # Looks at drives go on anyway, as soon as the catalog is back.
                await asyncio.sleep(_AGAIN_SECONDS)
                self._rung.set()
            await asyncio.sleep(_APART_SECONDS - _GATHER_SECONDS)

    async def _next(self) -> None:
        """Wait until there is something to write: fresh words, or the last of a flood."""
        if self._rung.is_set():
            return
        self._before = set()
        now = time.monotonic()
        ends = [at + HOLD_SECONDS - now for key, at in self._told.items() if key in self._words]
        with suppress(TimeoutError):
            async with asyncio.timeout(min(ends, default=None)):
                await self._rung.wait()

    async def _write(self) -> None:
        now = time.monotonic()
        self._told = {key: at for key, at in self._told.items() if now < at + HOLD_SECONDS}
        going_on = {key for key in self._before if key in self._told}
        self._before = set(self._words)
        heard = [key for key, count in self._words.items() if key not in going_on or count <= FLOOD]
        # What is heard while these are written is another word.
        words = {key: self._words.pop(key) for key in heard}
        renewals, self._renewals = self._renewals, set()
        try:
            if words:
                await note_told(self._catalog, sorted(words))
                await wake_due_drives(self._catalog)
            for subscription_id in renewals:
                await want_renewal(self._catalog, subscription_id)
        except BaseException:
            self._words.update(words)
            self._renewals |= renewals
            raise
        self._told |= dict.fromkeys(words, now)

    async def _find(self, subscription_id: str) -> Subscription | None:
        now = time.monotonic()
        found = self._known.get(subscription_id)
        if found is None or now - found[0] > _KNOWN_SECONDS:
            found = (now, await subscription_by_id(self._catalog, subscription_id))
            self._known[subscription_id] = found
            while len(self._known) > _MOST_KNOWN:
                self._known.popitem(last=False)
        return found[1]

    def _note_forged(self, subscription_id: str) -> None:
        self._forged += 1
        now = time.monotonic()
        if now - self._logged_at > _LOG_SECONDS:
            _log.warning("forged_calls", subscription=subscription_id, count=self._forged)
            self._logged_at, self._forged = now, 0

"""Words about changes, gathered: ten thousand calls in a moment make one look at a drive."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
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
_AGAIN_SECONDS: Final = 2.0
_KNOWN_SECONDS: Final = 30.0
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
        self._drives: set[str] = set()
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
        self._drives.add(one.drive_id)
        self._rung.set()
        return True

    def want_renewal(self, subscription_id: str) -> None:
        """Note that Microsoft asked for a renewal."""
        self._renewals.add(subscription_id)
        self._rung.set()

    async def run(self) -> None:
        """Write what was heard, until cancelled."""
        while True:
            await self._rung.wait()
            await asyncio.sleep(_GATHER_SECONDS)
            self._rung.clear()
            try:
                await self._write()
            except PartDown:
                # Looks at drives go on anyway, as soon as the catalog is back.
                await asyncio.sleep(_AGAIN_SECONDS)
                self._rung.set()

    async def _write(self) -> None:
        drives, renewals = set(self._drives), set(self._renewals)
        if drives:
            await note_told(self._catalog, sorted(drives))
            await wake_due_drives(self._catalog)
        for subscription_id in renewals:
            await want_renewal(self._catalog, subscription_id)
        self._renewals -= renewals
        self._drives -= drives

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

"""Refused files are asked for again, a day after they were refused: rights come back in silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from drivefeed.catalog.heartbeats import take_lease
from drivefeed.catalog.refused import refused_before
from drivefeed.catalog.waiting import clear
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog

TICK_SECONDS: Final = 300.0
AFTER_MS: Final = 24 * 3_600_000
_MOST: Final = 100
"""In one tick: a library of which nothing may be read must not crowd out what may."""
_LEASE: Final = "second try"
_LEASE_MS: Final = 120_000

_log = log("second_try")


@dataclass(frozen=True, slots=True)
class SecondTry:
    """Takes refused imports back, as ``drivefeed retry`` does.

    Args:
        owner: this process, of which one at a time does so.
    """

    catalog: Catalog
    owner: str

    async def tick(self) -> None:
        """Take some back that were refused a day ago; the transfer finds out how it is now."""
        before = self.catalog.clock.now() - AFTER_MS
        if not await refused_before(self.catalog, before, most=1):
            return
        if await take_lease(self.catalog, _LEASE, self.owner, for_ms=_LEASE_MS) is None:
            return
        found = await refused_before(self.catalog, before, most=_MOST)
        for import_id in found:
            await clear(self.catalog, import_id)
        _log.info("asked_again", count=len(found))

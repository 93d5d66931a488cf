"""Reconcile: each drive is listed in full now and then, for what its changes never told.

Tombstones get lost, and changes are told late or not at all (onedrive-api-docs#1927,
abraunegg#3751). The listing writes nothing; what it leaves in doubt is asked for by id, and only
that answer goes into the tree, as a change would. It takes the lane that nothing waits for, a few
seconds at a time, and goes on where it was after a restart on the same data folder; elsewhere it
begins anew.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from drivefeed.catalog.heartbeats import release_lease, take_lease
from drivefeed.catalog.reconciling import Reconciled, note_reconciled, reconciled
from drivefeed.catalog.scratch import Scratch
from drivefeed.domain.errors import DrivefeedError, NeedsAttention, PartDown, Throttled, Transient
from drivefeed.domain.redact import redact
from drivefeed.services.drive_check import DriveCheck
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.ports import Source

TICK_SECONDS: Final = 5.0
_WORK_SECONDS: Final = 2.0
_LEASE_MS: Final = 120_000
_PERSON_AGAIN_MS: Final = 15 * 60_000
_STALE_MS: Final = 24 * 3600 * 1000

_log = log("reconcile")


@dataclass(slots=True)
class _UnderWay:
    check: DriveCheck
    wait_until: int = 0
    failures: int = field(default=0)


class Reconcile:
    """Checks the drives whose time has come, one at a time in each process.

    Args:
        source: requests of this view of it take the lowest lane.
        folder: where the scratch files of checks under way are.
        every_ms: from the end of one check of a drive to the next; up to a quarter more or less,
            so that many drives do not come due at once.
        owner: names this process.
    """

    def __init__(
        self, catalog: Catalog, source: Source, folder: Path, *, every_ms: int, owner: str
    ) -> None:
        self._catalog = catalog
        self._source = source
        self._folder = folder
        self._every_ms = every_ms
        self._owner = owner
        self._under_way: dict[str, _UnderWay] = {}

    async def tick(self) -> None:
        """Do a few seconds of work, if a check is due."""
        now = self._catalog.clock.now()
        for drive, standing in await reconciled(self._catalog):
            if standing is None:
                await note_reconciled(self._catalog, drive.drive_id, Reconciled(self._next(now)))
            elif standing.due_at <= now and await self._work(drive, standing):
                return

    async def aclose(self) -> None:
        """Close what is under way; it is gone on with later."""
        for one in self._under_way.values():
            await one.check.scratch.aclose()
        self._under_way.clear()

    def _next(self, now: int) -> int:
        return now + round(self._every_ms * (0.75 + self._catalog.ids.fraction() / 2))

    async def _work(self, drive: Drive, standing: Reconciled) -> bool:
        """Go on with a drive's check; False where it has to wait, so that another's turn comes."""
        lease = f"reconcile {drive.drive_id}"
        now = self._catalog.clock.now()
        known = self._under_way.get(drive.drive_id)
        if known is not None and known.wait_until > now:
            return False
        if await take_lease(self._catalog, lease, self._owner, for_ms=_LEASE_MS) is None:
            # Another process is at it, and what we know of it is older.
            await self._forget(drive.drive_id)
            return False
        one = known or await self._begin(drive, now)
        try:
            is_more = await self._some(one.check, drive)
        except (Throttled, Transient, PartDown, NeedsAttention) as error:
            one.failures += 1
            one.wait_until = now + self._wait_ms(error, one.failures)
            await self._tell(drive, standing, error)
            return False
        one.failures = 0
        if not is_more:
            await self._end(drive, one.check)
            await release_lease(self._catalog, lease, self._owner)
        return True

    async def _some(self, check: DriveCheck, drive: Drive) -> bool:
        until = time.monotonic() + _WORK_SECONDS
        while time.monotonic() < until:
            if not await check.step(drive):
                return False
        return True

    async def _begin(self, drive: Drive, now: int) -> _UnderWay:
        scratch = Scratch(self._folder / f"{drive.drive_id}.scratch")
        began = int(await scratch.word("began_at") or 0)
        if now - began > _STALE_MS:
            # What was listed that long ago would put too much in doubt.
            await scratch.clear()
            await scratch.keep({"began_at": str(now)})
        check = DriveCheck(self._catalog, self._source, scratch, drive.drive_id, mends=True)
        one = self._under_way[drive.drive_id] = _UnderWay(check)
        return one

    async def _end(self, drive: Drive, check: DriveCheck) -> None:
        result = await check.result()
        now = self._catalog.clock.now()
        await note_reconciled(
            self._catalog,
            drive.drive_id,
            Reconciled(
                due_at=self._next(now),
                ended_at=now,
                listed=result.listed,
                suspects=result.suspects,
                found=result.found,
                unclear=result.unclear,
            ),
        )
        await check.scratch.discard()
        await self._forget(drive.drive_id)
        tell = _log.warning if result.found or result.unclear else _log.info
        tell(
            "reconciled",
            drive_id=drive.drive_id,
            listed=result.listed,
            suspects=result.suspects,
            found=result.found,
            unclear=result.unclear,
        )

    async def _forget(self, drive_id: str) -> None:
        one = self._under_way.pop(drive_id, None)
        if one is not None:
            await one.check.scratch.aclose()

    async def _tell(self, drive: Drive, standing: Reconciled, error: DrivefeedError) -> None:
        words = redact(str(error))
        _log.info("reconcile_waits", drive_id=drive.drive_id, error=words)
        if words != standing.trouble and not isinstance(error, Throttled):
            await note_reconciled(self._catalog, drive.drive_id, replace(standing, trouble=words))

    @staticmethod
    def _wait_ms(error: DrivefeedError, failures: int) -> int:
        if isinstance(error, Throttled):
            return int(error.seconds * 1000)
        if isinstance(error, NeedsAttention):
            return _PERSON_AGAIN_MS
        return min(_PERSON_AGAIN_MS, 10_000 << min(failures, 10))

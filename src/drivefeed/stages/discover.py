"""Discover and admit: follow a drive's changes page by page, and scan for a new connection."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from drivefeed.catalog import pages
from drivefeed.catalog.permissions import known_connection
from drivefeed.catalog.reminders import Claim, conclude, release
from drivefeed.catalog.sources import connections_in, fetch_drive
from drivefeed.catalog.tree_identity import welcome_restored_folders
from drivefeed.catalog.waiting import clear_cured
from drivefeed.domain.access import CURED_WITH_DRIVE
from drivefeed.domain.budget import Lane
from drivefeed.domain.errors import NeedsAttention, Part
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import redact
from drivefeed.ports import Stage
from drivefeed.stages.discover_ahead import reading_ahead
from drivefeed.stages.discover_doubts import clear_doubts
from drivefeed.stages.discover_pages import RoundGivenUp, follow_page
from drivefeed.stages.discover_routes import find_other_route
from drivefeed.stages.outcome import Again, Ask, Outcome, Rest
from drivefeed.stages.permissions import ask_as_far_as_told

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.pace import Pace
    from drivefeed.ports import Delivery, Source
    from drivefeed.stages.discover_ahead import ReadingAhead

_LONGEST_RUN_SECONDS = 60.0
_ATTENTION_AGAIN_MS = 5 * 60_000
_SELDOM_AGAIN_MS = 60 * 60_000
_SELDOM = frozenset({Reason.DRIVE_GONE, Reason.SITE_LOCKED, Reason.NO_ONEDRIVE})
"""What only changes when an administrator acts; asking for it more often was reported to be all
that a connector did for days (dust#23575)."""


class SubjectStage:
    """What stages about drives and connections share: their waiting is their reminder's."""

    stage: Stage
    parts: tuple[Part, ...] = ()
    _subject: str

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog

    def subject_id(self, payload: Mapping[str, Any]) -> str:
        """Return the subject a delivery names."""
        return str(payload[self._subject])

    async def commit(self, claim: Claim, outcome: Outcome) -> None:
        """Write when the stage is due again, or that it rests, and release the claim."""
        now = self.catalog.clock.now()
        match outcome:
            case Again():
                due_at: int | None = now + outcome.after_ms
            case Ask():
                due_at = now + (outcome.again_after_ms or _ATTENTION_AGAIN_MS)
            case _:
                due_at = None
        async with self.catalog.write(f"{self.stage}.done", beside=True) as connection:
            await conclude(connection, claim, due_at=due_at)
        await self.noted(claim, outcome)

    async def noted(self, claim: Claim, outcome: Outcome) -> None:
        """Tell people why the subject waits; nothing by default."""

    async def attempt_failed(self, claim: Claim, error: str, delivery: Delivery) -> None:
        """Release the claim; the queue tries again."""
        del error, delivery
        async with self.catalog.write(f"{self.stage}.attempt", beside=True) as connection:
            await release(connection, claim)


class Discover(SubjectStage):
    """One drive's delta: pages applied whole, a round settled, then due again."""

    stage = Stage.DISCOVER
    parts = (Part.SOURCE,)
    _subject = "drive_id"

    def __init__(self, catalog: Catalog, source: Source, *, pace: Pace | None = None) -> None:
        super().__init__(catalog)
        self._source = source
        self._pace = pace

    async def run(self, claim: Claim, delivery: Delivery) -> Outcome | None:
        """Follow changes for at most a minute; go on at once where there is more."""
        del delivery
        drive = await fetch_drive(self.catalog, claim.subject_id)
        async with self.catalog.read() as connection:
            known = await connections_in(connection, drive.drive_id)
        if not known or all(each.paused for each in known):
            return Rest()
        try:
            async with (
                reading_ahead(self._source.at(Lane.BACKFILL)) as listing,
                reading_ahead(self._source.at(Lane.CHANGES), most_pages=0) as changes,
            ):
                return await self._follow(drive, listing, changes, after_deaths=claim.starts > 1)
        except RoundGivenUp as error:
            if error.given_up == 1:
                return Again(error.wait_ms, detail=redact(str(error)))
            return Ask(error.reason, redact(str(error)), again_after_ms=error.wait_ms)
        except NeedsAttention as error:
            if await find_other_route(self.catalog, self._source, drive, error):
                return Again(0)
            later = _SELDOM_AGAIN_MS if error.reason in _SELDOM else None
            return Ask(error.reason, redact(str(error)), again_after_ms=later)

    async def _follow(
        self, drive: Drive, listing: ReadingAhead, changes: ReadingAhead, *, after_deaths: bool
    ) -> Outcome:
        started = time.monotonic()
        # A scan or an item that was asked for again leaves something to settle, too. That is no
        # round: the source was not asked, so it says nothing of how the drive is.
        is_round = not drive.settling
        while time.monotonic() - started < _LONGEST_RUN_SECONDS:
            if drive.settling:
                await clear_doubts(self.catalog, self._source, drive)
                await welcome_restored_folders(self.catalog, drive)
                async with self.catalog.read() as connection:
                    known = await connections_in(connection, drive.drive_id)
                if not await ask_as_far_as_told(
                    self.catalog, self._source, drive, known, until=started + _LONGEST_RUN_SECONDS
                ):
                    return Again(0)
                while await pages.settle_some(
                    self.catalog,
                    drive.drive_id,
                    self._pace,
                    is_round=is_round,
                    after_deaths=after_deaths,
                ):
                    if time.monotonic() - started > _LONGEST_RUN_SECONDS:
                        return Again(0)
                if not is_round:
                    is_round = True
                    drive = await fetch_drive(self.catalog, drive.drive_id)
                    continue
                # What waited for a sign-in or a right is not asked for one by one.
                while await clear_cured(self.catalog, drive.drive_id, CURED_WITH_DRIVE):
                    if time.monotonic() - started > _LONGEST_RUN_SECONDS:
                        return Again(0)
                # The schedule makes the next round due.
                return Rest()
            is_listed = drive.enumerating or drive.cursor is None
            source = listing if is_listed else changes
            drive = await follow_page(self.catalog, source, drive, after_deaths=after_deaths)
        return Again(0)

    async def noted(self, claim: Claim, outcome: Outcome) -> None:
        """Show on the drive why it waits."""
        match outcome:
            case Ask():
                await pages.note_drive(
                    self.catalog,
                    claim.subject_id,
                    hold=None,
                    attention=outcome.reason,
                    detail=outcome.detail,
                )
            case Again(hold=Reason() as hold):
                await pages.note_drive(
                    self.catalog,
                    claim.subject_id,
                    hold=hold,
                    attention=None,
                    detail=outcome.detail,
                )
            case _:
                await pages.calm_drive(self.catalog, claim.subject_id)


class Admit(SubjectStage):
    """Scans the tree for a connection that is new or whose policy changed."""

    stage = Stage.ADMIT
    _subject = "connection_id"

    def __init__(self, catalog: Catalog, source: Source) -> None:
        super().__init__(catalog)
        self._source = source

    async def run(self, claim: Claim, delivery: Delivery) -> Outcome | None:
        """Decide about the tree in chunks, each its own transaction."""
        del delivery
        started = time.monotonic()
        try:
            is_told = await self._ask_permissions(claim.subject_id, started + _LONGEST_RUN_SECONDS)
        except NeedsAttention as error:
            return Ask(error.reason, redact(str(error)))
        if not is_told:
            return Again(0)
        while await pages.scan_some(self.catalog, claim.subject_id):
            if time.monotonic() - started > _LONGEST_RUN_SECONDS:
                return Again(0)
        await pages.settle_soon(self.catalog, claim.subject_id)
        return Rest()

    async def _ask_permissions(self, connection_id: str, until: float) -> bool:
        """Ask for the permissions of all files of its folder, where its policy is about them."""
        known = await known_connection(self.catalog, connection_id)
        if known is None or known.policy.own_permissions != "exclude":
            return True
        drive = await fetch_drive(self.catalog, known.drive_id)
        return await ask_as_far_as_told(
            self.catalog, self._source, drive, [known], until=until, all_of_it=True
        )

"""Deaths of earlier runs are forgotten by a run of a drive that gets on, and by no other."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest
from sqlalchemy import update

from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.reminders import LANE_FRESH, Claim
from drivefeed.catalog.tables import reminders
from drivefeed.domain.remote import DeltaPage, DriveRef
from drivefeed.ports import Stage
from drivefeed.stages.discover import Discover
from support.clock import CountedIds, ManualClock, no_checkpoint
from unit.catalog.rig import ROOT, Rig, folder

if TYPE_CHECKING:
    from typing import Self

    from drivefeed.domain.budget import Lane
    from drivefeed.ports import Delivery, Source


class OnePage:
    """A source whose listing is one page."""

    def at(self, lane: Lane) -> Self:
        del lane
        return self

    async def delta(self, drive: DriveRef, link: str | None) -> DeltaPage:
        del drive, link
        return DeltaPage((ROOT, folder("docs")), None, "end")


@pytest.mark.parametrize(("starts", "counted"), [(3, 1), (1, 9)])
async def test_a_run_that_gets_on_forgets_deaths(
    catalog_url: str, starts: int, counted: int
) -> None:
    catalog = await open_catalog(
        catalog_url, clock=ManualClock(), ids=CountedIds(), checkpoint=no_checkpoint
    )
    rig = await Rig.make(catalog)
    await rig.connect()
    await rig.scan()
    async with catalog.write() as connection:
        # Nine, so that it is seen whether anything was written at all.
        row = update(reminders).where(reminders.c.subject_id == rig.drive_id)
        await connection.execute(row.values(starts=9))
    claim = Claim(rig.drive_id, Stage.DISCOVER, 1, "me", starts, LANE_FRESH)
    source, delivery = cast("Source", OnePage()), cast("Delivery", None)
    await Discover(catalog, source).run(claim, delivery)
    assert (await rig.reminder(rig.drive_id))["starts"] == counted
    await catalog.aclose()

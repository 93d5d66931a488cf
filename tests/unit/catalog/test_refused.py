"""Which refused files are asked for again, and when."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog.control import set_paused
from drivefeed.catalog.refused import refused_before
from drivefeed.catalog.resuming import resume_account
from drivefeed.catalog.sources import all_connections
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.reasons import Reason
from unit.catalog.rig import ROOT, file, folder

if TYPE_CHECKING:
    from support.clock import ManualClock
    from unit.catalog.rig import Rig


@pytest.fixture
async def refused(rig: Rig) -> Rig:
    """``a`` may not be downloaded, ``b`` is corrupt, ``c`` is searchable."""
    await rig.enumerate([ROOT, folder("docs"), *(file(one, "docs") for one in "abc")])
    await rig.advance(
        await rig.import_of("a"), Event.REFUSED, reason=Reason.DOWNLOAD_FORBIDDEN, detail="403"
    )
    await rig.advance(await rig.import_of("b"), Event.REFUSED, reason=Reason.CORRUPT, detail="bad")
    await rig.bring_live("c")
    return rig


async def due(rig: Rig, before: int) -> list[str]:
    return await refused_before(rig.catalog, before, most=10)


async def test_only_what_was_refused_long_enough_ago_is_asked_for_again(
    refused: Rig, clock: ManualClock
) -> None:
    key = (await refused.import_of("a")).import_id
    assert await due(refused, clock.now() - 1) == []
    assert await due(refused, clock.now()) == [key]


async def test_a_paused_drive_is_left_alone(refused: Rig, clock: ManualClock) -> None:
    (one,) = await all_connections(refused.catalog)
    await set_paused(refused.catalog, one, paused=True)
    assert await due(refused, clock.now()) == []


async def test_what_is_not_wanted_any_more_is_not_asked_for(
    refused: Rig, clock: ManualClock
) -> None:
    await refused.round([file("a", "docs", content="2")])
    assert await due(refused, clock.now()) == []


async def test_an_account_that_signs_in_again_asks_for_what_it_was_refused(refused: Rig) -> None:
    drive = await refused.drive()
    assert await resume_account(refused.catalog, drive.account_id) == 1
    states = [(await refused.import_of(one)).state for one in "abc"]
    assert states == [State.WITHDRAWING, State.REJECTED, State.SETTLED]
    await refused.withdraw(await refused.import_of("a"))
    after = await refused.import_of("a")
    assert (after.state, after.round) == (State.DISCOVERED, 2)

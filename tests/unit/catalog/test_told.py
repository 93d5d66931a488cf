"""Word of a change makes a drive due, once and once more; and how soon it is asked otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.catalog import pages, reminders
from drivefeed.catalog.control import set_paused
from drivefeed.catalog.sources import all_connections, wake_due_drives
from drivefeed.catalog.subscriptions import (
    all_subscriptions,
    forget_subscription,
    leftover_subscriptions,
    note_asked,
    note_granted,
    note_refused,
    note_told,
    subscription_by_id,
    want_renewal,
    watched_drives,
)
from drivefeed.domain.pace import Pace
from drivefeed.domain.subscription import SubscriptionState
from unit.catalog.rig import ROOT, file, folder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drivefeed.domain.remote import RemoteItem
    from support.clock import ManualClock
    from unit.catalog.rig import Rig

MINUTE = 60_000
REVISIT = 45_000
PACE = Pace(slowest_ms=5 * MINUTE, told_ms=60 * MINUTE, looks_a_minute=500)
TREE = [ROOT, folder("docs"), file("a", "docs")]


async def looked(rig: Rig, *items: Sequence[RemoteItem]) -> None:
    """Play a look at the drive, to its end."""
    await rig.apply(*items or [[]])
    while await pages.settle_some(rig.catalog, rig.drive_id, PACE):
        pass
    async with rig.catalog.write("discover.done", beside=True) as connection:
        await reminders.rest(connection, rig.drive_id)


async def woken(rig: Rig) -> bool:
    return await wake_due_drives(rig.catalog, revisit_ms=REVISIT) == 1


async def pause(rig: Rig) -> None:
    (one,) = await all_connections(rig.catalog)
    await set_paused(rig.catalog, one, paused=True)


async def followed(rig: Rig, clock: ManualClock) -> None:
    """A drive that was listed, and in which nothing has happened since."""
    await rig.enumerate(TREE)
    await looked(rig)
    clock.turn(seconds=61)
    assert await woken(rig)
    await looked(rig)
    clock.turn(seconds=1)
    assert not await woken(rig)


async def test_word_of_a_change_makes_one_look_due_and_later_one_more(
    rig: Rig, clock: ManualClock
) -> None:
    await followed(rig, clock)
    for _ in range(3):
        await note_told(rig.catalog, [rig.drive_id])
    assert await woken(rig)
    assert not await woken(rig), "it is due already"
    await looked(rig)
    clock.turn(seconds=30)
    assert not await woken(rig), "the second look is not due yet"
    clock.turn(seconds=15)
    assert await woken(rig), "what delta shows lags behind"
    await looked(rig)
    clock.turn(seconds=46)
    assert not await woken(rig), "there is no third look"


async def test_word_that_comes_during_a_look_is_followed_by_another(
    rig: Rig, clock: ManualClock
) -> None:
    await followed(rig, clock)
    await note_told(rig.catalog, [rig.drive_id])
    assert await woken(rig)
    clock.turn(seconds=2)
    await note_told(rig.catalog, [rig.drive_id])
    await looked(rig)
    assert await woken(rig)


async def test_word_about_a_paused_drive_waits(rig: Rig, clock: ManualClock) -> None:
    await followed(rig, clock)
    await pause(rig)
    await note_told(rig.catalog, [rig.drive_id])
    assert not await woken(rig)


async def test_a_drive_that_sleeps_is_asked_seldom_until_something_changes(
    rig: Rig, clock: ManualClock
) -> None:
    await followed(rig, clock)
    clock.turn(seconds=20 * 3600)
    assert await woken(rig)
    await looked(rig)
    clock.turn(seconds=4 * 60)
    assert not await woken(rig)
    clock.turn(seconds=61)
    assert await woken(rig)
    await looked(rig, [file("a", "docs", content="2")])
    clock.turn(seconds=61)
    assert await woken(rig), "it changed a minute ago"


async def test_a_subscription_is_asked_for_granted_and_makes_looks_seldom(
    rig: Rig, clock: ManualClock
) -> None:
    await followed(rig, clock)
    (drive,) = await watched_drives(rig.catalog)
    assert drive.subscription is None
    asked = await note_asked(rig.catalog, drive, secret_hash="x" * 64)
    assert await subscription_by_id(rig.catalog, asked.subscription_id) == asked
    ends = clock.now() + 72 * 60 * MINUTE
    assert await note_granted(rig.catalog, asked, remote_id="remote", expires_at=ends)
    assert await woken(rig), "what happened before the grant was told to nobody"
    await looked(rig, [file("a", "docs", content="2")])
    clock.turn(seconds=45)
    assert await woken(rig), "the word that the grant counts as is followed by a second look"
    await looked(rig)
    clock.turn(seconds=59 * 60)
    assert not await woken(rig)
    clock.turn(seconds=120)
    assert await woken(rig), "nobody relies on being told"


async def test_one_that_was_asked_again_is_not_answered_by_an_older_grant(
    rig: Rig, clock: ManualClock
) -> None:
    await followed(rig, clock)
    (drive,) = await watched_drives(rig.catalog)
    first = await note_asked(rig.catalog, drive, secret_hash="x" * 64)
    await note_asked(rig.catalog, drive, secret_hash="y" * 64)
    assert not await note_granted(rig.catalog, first, remote_id="old", expires_at=clock.now() + 1)
    (now,) = await all_subscriptions(rig.catalog)
    assert (now.state, now.remote_id) == (SubscriptionState.ASKED, None)


async def test_when_it_is_lost_the_drive_is_asked_as_often_as_before(
    rig: Rig, clock: ManualClock
) -> None:
    await followed(rig, clock)
    (drive,) = await watched_drives(rig.catalog)
    one = await note_asked(rig.catalog, drive, secret_hash="x" * 64)
    await note_granted(rig.catalog, one, remote_id="r", expires_at=clock.now() + 10 * MINUTE)
    assert await woken(rig)
    await looked(rig)
    assert (await rig.drive()).pace_ms == 60 * MINUTE
    await want_renewal(rig.catalog, one.subscription_id)
    (one,) = await all_subscriptions(rig.catalog)
    assert one.is_due(clock.now())
    await note_refused(
        rig.catalog, one, detail="no", retry_at=clock.now() + 20 * MINUTE, is_lost=True
    )
    (one,) = await all_subscriptions(rig.catalog)
    assert (one.state, one.failures, one.detail) == (SubscriptionState.REFUSED, 1, "no")
    assert not one.is_due(clock.now() + 19 * MINUTE)
    assert (await rig.drive()).pace_ms is None


async def test_the_subscription_of_a_drive_of_which_nothing_flows_is_left_over(
    rig: Rig, clock: ManualClock
) -> None:
    await followed(rig, clock)
    (drive,) = await watched_drives(rig.catalog)
    one = await note_asked(rig.catalog, drive, secret_hash="x" * 64)
    assert await leftover_subscriptions(rig.catalog) == []
    await pause(rig)
    assert await leftover_subscriptions(rig.catalog) == [one]
    assert await watched_drives(rig.catalog) == []
    await forget_subscription(rig.catalog, one)
    assert await all_subscriptions(rig.catalog) == []

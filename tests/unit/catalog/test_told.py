"""Word of a change makes a drive due, once and once more; and how soon it is asked otherwise."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import TYPE_CHECKING

from sqlalchemy import update

from drivefeed.catalog import pages, reminders
from drivefeed.catalog.control import set_paused
from drivefeed.catalog.sources import all_connections, wake_due_drives
from drivefeed.catalog.subscription_tables import subscriptions
from drivefeed.catalog.subscriptions import (
    all_subscriptions,
    forget_subscription,
    note_asked,
    note_granted,
    note_refused,
    note_told,
    subscription_by_id,
    want_renewal,
    watched_drives,
)
from drivefeed.catalog.subscriptions_due import due_subscriptions
from drivefeed.catalog.tables import drives
from drivefeed.domain.pace import Pace
from drivefeed.domain.subscription import SubscriptionState, is_silent
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
    assert (await to_do(rig))[0] == []
    await pause(rig)
    assert await to_do(rig) == ([one.subscription_id], [])
    assert await watched_drives(rig.catalog) == []
    await forget_subscription(rig.catalog, one)
    assert await to_do(rig) == ([], [])


async def to_do(rig: Rig, *, wants: bool = True) -> tuple[list[str], list[str]]:
    """Return the subscriptions that are to be ended, and the drives that are to be asked for."""
    due = await due_subscriptions(rig.catalog, wants=wants, silence_ms=10 * MINUTE)
    return [one.subscription_id for one in due.to_end], [one.drive_id for one in due.to_ask]


async def test_where_nobody_is_to_tell_us_every_subscription_is_to_be_ended(
    rig: Rig, clock: ManualClock
) -> None:
    await followed(rig, clock)
    assert await to_do(rig) == ([], [rig.drive_id])
    assert await to_do(rig, wants=False) == ([], [])
    (drive,) = await watched_drives(rig.catalog)
    one = await note_asked(rig.catalog, drive, secret_hash="x" * 64)
    assert await to_do(rig, wants=False) == ([one.subscription_id], [])
    later = clock.now() + MINUTE
    await note_refused(rig.catalog, one, detail="no", retry_at=later, is_lost=True)
    assert await to_do(rig, wants=False) == ([], []), "it is tried again later"
    clock.turn(seconds=60)
    assert await to_do(rig, wants=False) == ([one.subscription_id], [])


async def test_the_query_finds_what_the_rules_say(rig: Rig, clock: ManualClock) -> None:
    """The rules are pure functions; the query is held against them, case by case."""
    await followed(rig, clock)
    (drive,) = await watched_drives(rig.catalog)
    await note_asked(rig.catalog, drive, secret_hash="x" * 64)
    now, silence = clock.now(), 10 * MINUTE
    times = {
        "asked_at": [now - 1, now - 30 * MINUTE],
        "expires_at": [None, now + 1, now + 30 * MINUTE, now + 30 * MINUTE + 1, now - 1],
        "retry_at": [None, now, now + 1],
    }
    told = [None, now - 25 * MINUTE, now]
    changed = [None, now - silence, now - silence + 1, now - silence - 1, now - 20 * MINUTE]
    rows = [
        dict(zip(times, each, strict=True)) | {"state": state, "wants_renewal": wants}
        for each in product(*times.values())
        for state in SubscriptionState
        for wants in (False, True)
    ]
    found = Counter[bool]()
    for number, row in enumerate(rows[::5]):
        at = {"told_at": told[number % 3], "changed_at": changed[number % 5]}
        async with rig.catalog.write("told") as connection:
            await connection.execute(update(subscriptions).values(**row))
            await connection.execute(update(drives).values(**at))
        (drive,) = await watched_drives(rig.catalog)
        one = drive.subscription
        assert one is not None
        is_dead = one.state is SubscriptionState.LIVE and is_silent(
            asked_at=one.asked_at, now=now, silence_ms=silence, **at
        )
        wanted = one.is_due(now) or is_dead
        assert (await to_do(rig))[1] == [rig.drive_id] * wanted, (row, at)
        found[wanted] += 1
    assert min(found.values()) > 5, found


async def test_a_subscription_through_an_account_that_reads_no_more_is_asked_for_anew(
    rig: Rig, clock: ManualClock
) -> None:
    await followed(rig, clock)
    (drive,) = await watched_drives(rig.catalog)
    one = await note_asked(rig.catalog, drive, secret_hash="x" * 64)
    await note_granted(rig.catalog, one, remote_id="r", expires_at=clock.now() + 60 * MINUTE)
    assert await to_do(rig) == ([], [])
    async with rig.catalog.write("told") as connection:
        await connection.execute(update(subscriptions).values(account_id="another"))
    assert await to_do(rig) == ([], [rig.drive_id])

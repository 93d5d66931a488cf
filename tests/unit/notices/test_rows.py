"""One trouble is one row: opened, refreshed, over, and told as one message."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.notice_deliveries import claim, drop_unknown, mark_delivered, mark_failed
from drivefeed.catalog.notices import list_notices, reconcile
from drivefeed.catalog.retention import prune_notices
from drivefeed.domain.notices import NoticeKind, Severity, Subscription, Trouble
from support.clock import CountedIds, ManualClock, no_checkpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.notice_deliveries import Claimed

MINUTE = 60_000
EVERYTHING = Subscription("desk", digest_ms=60 * MINUTE)


def trouble(subject: str = "one", **changes: Any) -> Trouble:
    plain = Trouble(
        kind=NoticeKind.FAILING,
        severity=Severity.WARNING,
        org_id=None,
        org="",
        subject_id=subject,
        subject=f"connection '{subject}'",
        words="It is failing. Nobody knows why.",
        remedy="Look.",
        command="drivefeed status",
    )
    return replace(plain, **changes)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def catalog(catalog_url: str, clock: ManualClock) -> AsyncIterator[Catalog]:
    whole = await open_catalog(catalog_url, clock=clock, ids=CountedIds(), checkpoint=no_checkpoint)
    yield whole
    await whole.aclose()


async def claimed(catalog: Catalog, wanted: Subscription = EVERYTHING) -> Claimed | None:
    return await claim(catalog, wanted.channel, digest_ms=wanted.digest_ms, busy_ms=2 * MINUTE)


async def sent(catalog: Catalog, wanted: Subscription = EVERYTHING) -> list[list[str]]:
    """Send everything that is due; return, by message, what it tells of what."""
    messages = []
    while one := await claimed(catalog, wanted):
        await mark_delivered(catalog, one, answer="250 ok")
        messages.append([f"{told.happening} {told.subject}" for told in one.message.told])
    return messages


async def test_a_trouble_that_lasts_is_told_once(catalog: Catalog, clock: ManualClock) -> None:
    for _ in range(3):
        await reconcile(catalog, [trouble()], [EVERYTHING])
        clock.turn(seconds=60)
    (one,) = await list_notices(catalog)
    assert (one["count"], one["last_at"] - one["first_at"]) == (3, 2 * MINUTE)
    assert await sent(catalog) == [["opened connection 'one'"]]
    clock.turn(days=2)
    await reconcile(catalog, [trouble()], [EVERYTHING])
    assert await sent(catalog) == []


async def test_words_follow_what_is_so_now(catalog: Catalog) -> None:
    await reconcile(catalog, [trouble(words="37 files wait.")], [])
    await reconcile(catalog, [trouble(words="41 files wait.")], [])
    (one,) = await list_notices(catalog)
    assert one["words"] == "41 files wait."


async def test_one_that_comes_back_is_a_new_row(catalog: Catalog, clock: ManualClock) -> None:
    await reconcile(catalog, [trouble()], [EVERYTHING])
    assert await sent(catalog) == [["opened connection 'one'"]]
    clock.turn(seconds=7200)
    change = await reconcile(catalog, [], [EVERYTHING])
    assert len(change.closed) == 1
    assert await sent(catalog) == [["over connection 'one'"]]
    clock.turn(seconds=7200)
    await reconcile(catalog, [trouble()], [EVERYTHING])
    assert await sent(catalog) == [["opened connection 'one'"]]
    assert [one["over_at"] is None for one in await list_notices(catalog)] == [True, False]


async def test_what_was_never_told_is_not_told_to_be_over(catalog: Catalog) -> None:
    await reconcile(catalog, [trouble()], [EVERYTHING])
    await reconcile(catalog, [], [EVERYTHING])
    assert await sent(catalog) == []
    (one,) = await list_notices(catalog)
    assert one["deliveries"][0]["detail"] == "It was over before it was told."


async def test_the_next_step_of_a_warning_does_not_end_it(
    catalog: Catalog, clock: ManualClock
) -> None:
    early = trouble(kind=NoticeKind.EXPIRY, step="30")
    late = trouble(kind=NoticeKind.EXPIRY, step="14", words="It ends in 14 days.")
    at_once = Subscription("desk")
    await reconcile(catalog, [early], [at_once])
    assert await sent(catalog, at_once) == [["opened connection 'one'"]]
    clock.turn(days=16)
    await reconcile(catalog, [late], [at_once])
    assert await sent(catalog, at_once) == [["opened connection 'one'"]]
    clock.turn(days=1)
    await reconcile(catalog, [], [at_once])
    assert await sent(catalog, at_once) == [["over connection 'one'"]]


async def test_a_digest_gathers_and_urgent_ones_do_not_wait(
    catalog: Catalog, clock: ManualClock
) -> None:
    known = [trouble("one"), trouble("two")]
    await reconcile(catalog, known, [EVERYTHING])
    assert await sent(catalog) == [["opened connection 'one'", "opened connection 'two'"]]
    clock.turn(seconds=600)
    known += [trouble("three"), trouble("four"), trouble("five", severity=Severity.URGENT)]
    await reconcile(catalog, known[1:], [EVERYTHING])
    assert await sent(catalog) == [["opened connection 'five'"]]
    clock.turn(seconds=49 * 60)
    assert await sent(catalog) == []
    clock.turn(seconds=60)
    expected = ["opened connection 'four'", "opened connection 'three'", "over connection 'one'"]
    (message,) = await sent(catalog)
    assert sorted(message) == expected


async def test_a_channel_is_told_what_it_wants(catalog: Catalog) -> None:
    loud = Subscription("loud", severity=Severity.URGENT)
    ours = Subscription("ours", orgs=frozenset({"acme"}))
    all_of_it = Subscription("all")
    troubles = [
        trouble("quiet"),
        trouble("urgent", severity=Severity.URGENT),
        trouble("acme", org="acme"),
    ]
    await reconcile(catalog, troubles, [loud, ours, all_of_it])
    assert await sent(catalog, loud) == [["opened connection 'urgent'"]]
    assert await sent(catalog, ours) == [["opened connection 'acme'"]]
    assert sum(map(len, await sent(catalog, all_of_it))) == 3


async def test_a_channel_that_is_added_later_hears_of_what_is_open(catalog: Catalog) -> None:
    await reconcile(catalog, [trouble()], [])
    await reconcile(catalog, [trouble()], [EVERYTHING])
    assert await sent(catalog) == [["opened connection 'one'"]]


async def test_a_message_belongs_to_one_process_at_a_time(
    catalog: Catalog, clock: ManualClock
) -> None:
    await reconcile(catalog, [trouble("one"), trouble("two")], [EVERYTHING])
    first = await claimed(catalog)
    assert first is not None
    assert await claimed(catalog) is None
    clock.turn(seconds=120)
    again = await claimed(catalog)
    assert again is not None
    assert again.message.key == first.message.key
    assert again.message.told == first.message.told
    await mark_delivered(catalog, first, answer="250 ok")
    clock.turn(seconds=7200)
    assert await claimed(catalog) is None


async def test_a_message_that_failed_stays_the_same_message(
    catalog: Catalog, clock: ManualClock
) -> None:
    await reconcile(catalog, [trouble("one")], [EVERYTHING])
    first = await claimed(catalog)
    assert first is not None
    await mark_failed(catalog, first, words="No.", again_at=clock.now() + MINUTE)
    clock.turn(seconds=30)
    await reconcile(catalog, [trouble("one"), trouble("two")], [EVERYTHING])
    assert await claimed(catalog) is None
    clock.turn(seconds=30)
    again = await claimed(catalog)
    assert again is not None
    assert again.message.key == first.message.key
    assert again.attempts == 1
    await mark_failed(catalog, again, words="Never.", again_at=None)
    assert await sent(catalog) == [["opened connection 'two'"]]
    one = next(row for row in await list_notices(catalog) if row["subject_id"] == "one")
    assert one["deliveries"][0]["gave_up_at"] == clock.now()
    assert one["deliveries"][0]["detail"] == "Never."


async def test_a_channel_that_is_gone_is_given_up(catalog: Catalog) -> None:
    await reconcile(catalog, [trouble()], [EVERYTHING])
    assert await drop_unknown(catalog, ["other"]) == 1
    assert await drop_unknown(catalog, ["other"]) == 0
    assert await sent(catalog) == []


async def test_past_notices_are_forgotten(catalog: Catalog, clock: ManualClock) -> None:
    await reconcile(catalog, [trouble("one"), trouble("two")], [EVERYTHING])
    await sent(catalog)
    await reconcile(catalog, [trouble("two")], [EVERYTHING])
    clock.turn(days=1)
    assert await prune_notices(catalog, before=clock.now()) == 1
    assert [one["subject_id"] for one in await list_notices(catalog)] == ["two"]


async def test_what_is_not_known_yet_is_not_over(catalog: Catalog) -> None:
    down = trouble("store", kind=NoticeKind.PART_DOWN)
    await reconcile(catalog, [down], [])
    assert not (await reconcile(catalog, [], [], keep={NoticeKind.PART_DOWN})).closed
    assert (await reconcile(catalog, [], [])).closed

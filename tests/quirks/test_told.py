"""Quirks of being told, and of what delta shows then (GRAPH B-1 17, 18, B-4 92, 94)."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import httpx

from drivefeed.catalog.sources import wake_due_drives
from drivefeed.catalog.subscriptions import all_subscriptions, note_told
from drivefeed.domain.pace import Pace
from drivefeed.domain.subscription import PATH, SILENCE_MS
from drivefeed.services.subscriptions import Subscribing
from drivefeed.sources.graph.subscriptions import GraphSubscriptions
from drivefeed.stages import discover
from support.ear import listening
from support.waiting import until
from unit.web.conftest import serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.domain.subscription import Subscription
    from quirks.stand import Docs, Stand


DELAY_SECONDS = 30
LIFETIME_MS = 24 * 3_600_000


async def looked_around(stand: Stand, seconds: float) -> None:
    """Turn both clocks on, and look at what the schedule makes due then."""
    stand.sim.skew += seconds
    stand.clock.advance(seconds)
    await wake_due_drives(stand.catalog)
    await stand.work()


async def heard(stand: Stand) -> None:
    """A word comes, and is followed by a look at once."""
    stand.clock.advance(1)
    await note_told(stand.catalog, [stand.drive_id])
    await looked_around(stand, 0)


async def test_17_a_tombstone_that_delta_loses_removes_nothing_and_is_found_in_full(
    docs: Docs,
) -> None:
    stand = docs.stand
    stand.sim.faults.add("lose_tombstones", op="delta", share=1.0, count=1)
    stand.drive.delete(docs.b.id)
    await stand.sync()
    await stand.sync()
    assert await stand.live() == {docs.a.id, docs.b.id}, "nothing is inferred from silence"
    stand.drive.expire_tokens()
    await stand.sync()
    assert await stand.live() == {docs.a.id}


async def test_18_a_word_that_comes_before_delta_shows_the_change_is_followed_by_another_look(
    docs: Docs,
) -> None:
    stand = docs.stand
    new = stand.drive.create_file("new.txt", b"new", docs.docs.id)
    stand.drive.hide(new.id, DELAY_SECONDS)
    await heard(stand)
    assert new.id not in await stand.live(), "delta does not show it yet"
    await looked_around(stand, DELAY_SECONDS)
    assert new.id not in await stand.live(), "nobody looks yet"
    await looked_around(stand, 46 - DELAY_SECONDS)
    assert new.id in await stand.live(), "long before the next look that nobody told of"


async def test_18_silence_of_delta_is_no_removal(docs: Docs) -> None:
    stand = docs.stand
    stand.drive.quirks.delay = DELAY_SECONDS
    stand.drive.rename(docs.a.id, "there.txt")
    await heard(stand)
    stand.drive.rename(docs.a.id, "a.txt")
    await heard(stand)
    assert set(await stand.tree()) == {"docs/a.txt", "docs/sub/b.txt"}
    await looked_around(stand, 60)
    assert set(await stand.tree()) == {"docs/a.txt", "docs/sub/b.txt"}
    assert await stand.live() == {docs.a.id, docs.b.id}


@asynccontextmanager
async def subscribed(stand: Stand) -> AsyncIterator[tuple[Subscribing, Subscription]]:
    """A drive of whose changes Graph tells an endpoint of ours."""
    # The two clocks are not the same; nothing here may end before it should.
    stand.sim.skew += stand.clock.now() / 1000 - stand.sim.app.clock.now()
    stand.stages["discover"] = discover.Discover(stand.catalog, stand.source, pace=Pace())
    async with listening() as ear:
        clerk = Subscribing(
            stand.catalog,
            GraphSubscriptions(stand.source),
            url=ear.url,
            lifetime_ms=LIFETIME_MS,
            owner="clerk",
        )
        await clerk.tick()
        (one,) = await all_subscriptions(stand.catalog)
        await looked_around(stand, 1)
        yield clerk, one


async def test_94_a_subscription_that_died_is_made_up_for_by_looks_and_replaced(
    docs: Docs,
) -> None:
    stand = docs.stand
    async with subscribed(stand) as (clerk, one):
        await looked_around(stand, 3600)
        assert one.remote_id is not None
        stand.sim.subscriptions.kill(one.remote_id)
        new = stand.drive.create_file("new.txt", b"new", docs.docs.id)
        await looked_around(stand, 3601)
        assert new.id in await stand.live(), "it is asked for changes all the same"
        await clerk.tick()
        assert [each.remote_id for each in await all_subscriptions(stand.catalog)] == [
            one.remote_id
        ], "word of it may still come"
        await looked_around(stand, SILENCE_MS / 1000)
        await clerk.tick()
        (again,) = await all_subscriptions(stand.catalog)
        assert [each.id for each in stand.sim.subscriptions.alive()] == [again.remote_id]


async def test_94_it_is_renewed_at_half_of_its_life(docs: Docs) -> None:
    stand = docs.stand
    async with subscribed(stand) as (clerk, one):
        for _ in range(4):
            await looked_around(stand, LIFETIME_MS / 1000 / 2 + 1)
            await clerk.tick()
        (known,) = await all_subscriptions(stand.catalog)
        assert (known.remote_id, known.subscription_id) == (one.remote_id, one.subscription_id)
        (alive,) = stand.sim.subscriptions.alive()
        assert alive.id == one.remote_id


async def test_92_word_without_a_changed_item_makes_the_drive_of_its_subscription_due(
    docs: Docs,
) -> None:
    stand = docs.stand
    async with serving(stand.catalog, notifications_url="https://feed.example") as page:
        clerk = Subscribing(
            stand.catalog,
            GraphSubscriptions(stand.source),
            url=page.url,
            lifetime_ms=LIFETIME_MS,
            owner="clerk",
        )
        stand.sim.skew += stand.clock.now() / 1000 - stand.sim.app.clock.now()
        await clerk.tick()
        await looked_around(stand, 60)
        (alive,) = stand.sim.subscriptions.alive()
        assert alive.notification_url.startswith(page.url + PATH)
        # As it was reported for drives: nothing in it says what changed, and nothing is believed.
        call = {
            "subscriptionId": alive.id,
            "clientState": alive.client_state,
            "resource": "drives/b!another/root",
            "tenantId": alive.tenant,
            "resourceData": None,
            "subscriptionExpirationDateTime": "2016-11-20T18:23:45.9356913Z",
            "changeType": "updated",
        }
        new = stand.drive.create_file("new.txt", b"new", docs.docs.id)
        await stand.sim.subscriptions.settle()
        before = (await stand.row()).cursor
        stand.clock.advance(60)
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.post(alive.notification_url, json={"value": [call]})
        assert answer.status_code == 202

        async def came() -> bool:
            await wake_due_drives(stand.catalog)
            await stand.work()
            return new.id in await stand.live()

        await until(came, what="the look that follows the word")
        assert (await stand.row()).cursor != before

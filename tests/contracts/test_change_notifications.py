"""What every source that can say when something changed promises; Graph's is the one there is.

It is asked over HTTP against graphsim, which calls an endpoint on loopback.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.domain.errors import (
    DrivefeedError,
    NeedsAttention,
    NotFound,
    PartDown,
    Throttled,
    Transient,
)
from drivefeed.domain.remote import DriveRef
from drivefeed.domain.subscription import LIFECYCLE, LONGEST_MS, PATH
from drivefeed.ports import SubscriptionWish
from drivefeed.sources.graph.subscriptions import GraphSubscriptions
from graphsim.clock import ManualClock
from graphsim.serving import GraphSim, serve
from integration.graph_source.kit import HurriedClock, account_of, sim_state, source_of
from support.ear import Ear, listening
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from drivefeed.ports import ChangeNotifications

HOUR_MS = 3_600_000
SECRET = "the word, 100% + & “quoted”"


@dataclass
class Ground:
    """What can say that something changed, a drive, its other side, and who is told."""

    told: ChangeNotifications
    ref: DriveRef
    sim: GraphSim
    clock: ManualClock
    ear: Ear

    def now(self) -> int:
        return round(self.clock.now() * 1000)

    def wish(self, name: str = "one", *, hours: float = 24) -> SubscriptionWish:
        url = f"{self.ear.url}{PATH}{name}"
        ends = self.now() + round(hours * HOUR_MS)
        return SubscriptionWish(url, url + LIFECYCLE, SECRET, ends)

    async def known(self) -> list[str]:
        return await self.told.subscribed(self.ref, self.ear.url + PATH)


@asynccontextmanager
async def graph(**account: Any) -> AsyncIterator[Ground]:
    clock = ManualClock()
    async with serve(state=sim_state(), clock=clock) as sim, listening() as ear:
        source = source_of(account_of(sim, **account), HurriedClock())
        told = GraphSubscriptions(source)
        try:
            yield Ground(told, DriveRef("sim", sim.memory.id), sim, clock, ear)
        finally:
            await source.aclose()


@pytest.fixture
async def ground() -> AsyncIterator[Ground]:
    async with graph() as made:
        yield made


async def test_a_subscription_is_granted_after_a_handshake_at_both_addresses(
    ground: Ground,
) -> None:
    wish = ground.wish()
    granted = await ground.told.subscribe(ground.ref, wish)
    assert abs(granted.expires_at - wish.expires_at) < 1000, "to the second"
    assert ground.ear.handshakes == [f"{PATH}one", f"{PATH}one{LIFECYCLE}"]
    assert await ground.known() == [granted.remote_id]


async def test_a_change_is_told_with_the_word_and_nothing_of_what_changed(ground: Ground) -> None:
    granted = await ground.told.subscribe(ground.ref, ground.wish())
    ground.sim.memory.create_file("secret plans.txt", b"secret")
    await until(lambda: ground.ear.calls, what="word of the change")
    path, call = ground.ear.calls[0]
    assert path == f"{PATH}one"
    assert (call["clientState"], call["subscriptionId"]) == (SECRET, granted.remote_id)
    assert "plans" not in str(call)


async def test_without_an_echo_there_is_no_grant(ground: Ground) -> None:
    ground.ear.echoes = False
    with pytest.raises(DrivefeedError):
        await ground.told.subscribe(ground.ref, ground.wish())
    assert await ground.known() == []


async def test_where_nobody_listens_there_is_no_grant(ground: Ground) -> None:
    nobody = f"http://127.0.0.1:1{PATH}one"
    ends = ground.now() + HOUR_MS
    with pytest.raises(DrivefeedError):
        await ground.told.subscribe(
            ground.ref, SubscriptionWish(nobody, nobody + LIFECYCLE, SECRET, ends)
        )


async def test_the_longest_time_is_granted_and_a_longer_one_refused(ground: Ground) -> None:
    await ground.told.subscribe(ground.ref, ground.wish(hours=LONGEST_MS / HOUR_MS - 0.1))
    with pytest.raises(DrivefeedError):
        await ground.told.subscribe(ground.ref, ground.wish("two", hours=LONGEST_MS / HOUR_MS + 1))


async def test_a_renewal_keeps_the_subscription_and_makes_it_last(ground: Ground) -> None:
    granted = await ground.told.subscribe(ground.ref, ground.wish())
    ends = granted.expires_at + 5 * HOUR_MS
    renewed = await ground.told.renew(ground.ref, granted.remote_id, expires_at=ends)
    assert (renewed.remote_id, renewed.expires_at) == (granted.remote_id, ends)
    ground.clock.advance(26 * 3600)
    assert await ground.known() == [granted.remote_id]


async def test_a_renewal_answers_the_demand_to_authorize_again(ground: Ground) -> None:
    granted = await ground.told.subscribe(ground.ref, ground.wish())
    assert await ground.sim.subscriptions.require_reauthorization(granted.remote_id)
    path, call = ground.ear.calls[0]
    assert path == f"{PATH}one{LIFECYCLE}"
    assert (call["lifecycleEvent"], call["clientState"]) == ("reauthorizationRequired", SECRET)
    await ground.told.renew(ground.ref, granted.remote_id, expires_at=granted.expires_at + 1000)
    ground.sim.memory.create_file("new.txt", b"new")
    await until(lambda: len(ground.ear.calls) > 1, what="word of the change")


async def test_what_is_not_known_any_more_is_not_renewed(ground: Ground) -> None:
    granted = await ground.told.subscribe(ground.ref, ground.wish())
    ground.sim.subscriptions.kill(granted.remote_id)
    for remote_id in (granted.remote_id, "00000000-0000-0000-0000-000000000000"):
        with pytest.raises(NotFound):
            await ground.told.renew(ground.ref, remote_id, expires_at=ground.now() + HOUR_MS)


async def test_one_that_is_ended_tells_nothing_and_ending_it_again_is_no_failure(
    ground: Ground,
) -> None:
    granted = await ground.told.subscribe(ground.ref, ground.wish())
    await ground.told.unsubscribe(ground.ref, granted.remote_id)
    assert await ground.known() == []
    await ground.told.unsubscribe(ground.ref, granted.remote_id)
    ground.sim.memory.create_file("new.txt", b"new")
    await ground.sim.subscriptions.settle()
    assert ground.ear.calls == []


async def test_only_the_subscriptions_of_this_drive_and_this_address_are_ours(
    ground: Ground,
) -> None:
    other_drive = ground.sim.app.add_drive("Other")
    ours = [await ground.told.subscribe(ground.ref, ground.wish(name)) for name in ("one", "two")]
    await ground.told.subscribe(DriveRef("sim", other_drive.id), ground.wish("three"))
    elsewhere = f"{ground.ear.url}/somebody/else"
    await ground.told.subscribe(
        ground.ref,
        SubscriptionWish(elsewhere, elsewhere, SECRET, ground.now() + HOUR_MS),
    )
    assert sorted(await ground.known()) == sorted(one.remote_id for one in ours)


def calls_of(ground: Ground) -> dict[str, Callable[[], Awaitable[object]]]:
    """Return everything that can be asked, by the method that Graph has for it."""
    told, ref = ground.told, ground.ref
    return {
        "POST": lambda: told.subscribe(ref, ground.wish()),
        "PATCH": lambda: told.renew(ref, "any", expires_at=ground.now() + HOUR_MS),
        "DELETE": lambda: told.unsubscribe(ref, "any"),
        "GET": ground.known,
    }


@pytest.mark.parametrize("method", ["POST", "PATCH", "DELETE", "GET"])
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, Throttled),
        (503, Throttled),
        (500, Transient),
        (401, NeedsAttention),
    ],
)
async def test_refusals_are_translated(
    ground: Ground, method: str, status: int, error: type[DrivefeedError]
) -> None:
    ground.sim.faults.add("status", op="subscriptions", status=status, retry_after="7", count=-1)
    with pytest.raises(error) as failure:
        await calls_of(ground)[method]()
    if isinstance(failure.value, Throttled):
        assert failure.value.seconds == 7


async def test_a_source_that_is_gone_is_a_part_that_is_down() -> None:
    async with graph(graph_url="http://127.0.0.1:1") as ground:
        for call in calls_of(ground).values():
            with pytest.raises(PartDown):
                await call()


async def test_an_answer_that_is_none_is_tried_again_later(ground: Ground) -> None:
    ground.sim.faults.add("not_json", op="subscriptions", count=1)
    with pytest.raises(Transient):
        await ground.told.subscribe(ground.ref, ground.wish())
    # It may have been granted all the same, and is found by its address.
    assert len(await ground.known()) == 1

"""Rows of the outbox on their way through a real Redis, and what comes back when it forgets."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import select, update

from drivefeed.catalog import reminders, tables
from drivefeed.catalog.engine import open_catalog
from drivefeed.domain.identity import job_id
from drivefeed.ports import Stage
from drivefeed.services.relay import REMIND_MS, Relay
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint
from support.publish_jobs import PREFIX
from unit.catalog.rig import Rig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from drivefeed.catalog.engine import Catalog
    from drivefeed.queue import BullmqQueue
    from support.valkey import ValkeyServer

SUBJECT = "7a3f0d1e-5b0c-5a3e-9d8f-0c1b2a394857"
PAYLOAD: dict[str, str | int] = {
    "schema": 1,
    "document_id": "doc-1",
    "import_id": SUBJECT,
    "round": 1,
}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def catalog(tmp_path: Path, clock: ManualClock) -> AsyncIterator[Catalog]:
    opened = await open_catalog(
        new_catalog(tmp_path / "catalog.db"),
        clock=clock,
        ids=CountedIds(),
        checkpoint=no_checkpoint,
    )
    rig = await Rig.make(opened)
    async with opened.write("test") as connection:
        await reminders.put(
            connection,
            subject_id=SUBJECT,
            org_id=rig.org_id,
            stage=Stage.TRANSFER,
            due_at=clock.now(),
            payload=PAYLOAD | {"org_id": rig.org_id},
        )
    yield opened
    await opened.aclose()


@pytest.fixture
def queue(make_queue: Callable[..., BullmqQueue], own_valkey: ValkeyServer) -> BullmqQueue:
    return make_queue(own_valkey.url)


@pytest.fixture
def relay(catalog: Catalog, queue: BullmqQueue) -> Relay:
    return Relay(catalog, queue, windows=dict.fromkeys(Stage, 10), attempts=dict.fromkeys(Stage, 1))


def delivery(number: int) -> str:
    return job_id(Stage.TRANSFER, SUBJECT, number)


async def waiting(queue: BullmqQueue, most: int = 3) -> set[str]:
    return await queue.pending(Stage.TRANSFER, [delivery(n) for n in range(1, most + 1)])


async def delete(own_valkey: ValkeyServer, number: int) -> None:
    with own_valkey.client() as client:
        base = f"{PREFIX}:{Stage.TRANSFER.value}"
        assert client.delete(f"{base}:{delivery(number)}") == 1
        client.zrem(f"{base}:prioritized", delivery(number))
        client.lrem(f"{base}:wait", 0, delivery(number))


def take(own_valkey: ValkeyServer, number: int) -> None:
    """Have a worker take it, as far as the queue's lists tell."""
    with own_valkey.client() as client:
        base = f"{PREFIX}:{Stage.TRANSFER.value}"
        assert client.zrem(f"{base}:prioritized", delivery(number)) == 1
        client.lpush(f"{base}:active", delivery(number))


async def soon(ask: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await ask():  # noqa: ASYNC110 - the state asked for lives in another process
            await asyncio.sleep(0.02)


async def test_what_is_deleted_before_the_first_look_for_the_sentinel_is_sent_once_again(
    catalog: Catalog,
    relay: Relay,
    queue: BullmqQueue,
    own_valkey: ValkeyServer,
    clock: ManualClock,
) -> None:
    running = asyncio.create_task(relay.run())

    async def sent() -> bool:
        # The queue has it a moment before the row says so.
        async with catalog.read() as connection:
            rows = await connection.execute(select(tables.reminders.c.sent_at))
            return rows.scalar_one() is not None and await waiting(queue) == {delivery(1)}

    try:
        await soon(sent)
        await delete(own_valkey, 1)
        assert not await relay.notice_emptied_queue()
        clock.turn(ms=REMIND_MS + 1)
        assert await relay.bring_back() == 1

        async def sent_again() -> bool:
            return bool(await waiting(queue))

        await soon(sent_again)
        assert await waiting(queue) == {delivery(2)}
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_what_dead_workers_had_taken_does_not_fill_the_window(
    catalog: Catalog, queue: BullmqQueue, own_valkey: ValkeyServer, clock: ManualClock
) -> None:
    narrow = Relay(
        catalog, queue, windows=dict.fromkeys(Stage, 1), attempts=dict.fromkeys(Stage, 1)
    )
    assert await narrow.send_due() == 1
    take(own_valkey, 1)
    async with catalog.write("test") as connection:
        org_id = await connection.scalar(select(tables.reminders.c.org_id))
        assert org_id is not None
        await reminders.put(
            connection,
            subject_id="another",
            org_id=org_id,
            stage=Stage.TRANSFER,
            due_at=clock.now(),
            payload=PAYLOAD | {"org_id": org_id},
        )
    assert await narrow.send_due() == 0, "the one that is at work fills the window"
    async with catalog.write("test") as connection:
        died = tables.reminders.c.subject_id == SUBJECT
        await connection.execute(
            update(tables.reminders).where(died).values(number=2, due_at=None, sent_at=None)
        )
    assert await narrow.send_due() == 1
    assert await queue.active(Stage.TRANSFER) == {delivery(1)}


async def test_a_delivery_that_still_waits_is_not_sent_again(
    relay: Relay, queue: BullmqQueue, clock: ManualClock
) -> None:
    assert await relay.send_due() == 1
    clock.turn(ms=REMIND_MS + 1)
    assert await relay.bring_back() == 0
    assert await relay.send_due() == 0
    assert await waiting(queue) == {delivery(1)}


async def test_an_emptied_queue_gets_every_row_again(
    relay: Relay, queue: BullmqQueue, own_valkey: ValkeyServer
) -> None:
    assert await relay.notice_emptied_queue()
    assert await relay.send_due() == 1
    with own_valkey.client() as client:
        client.flushall()
    assert await relay.notice_emptied_queue()
    assert await relay.send_due() == 1
    assert await waiting(queue) == {delivery(1)}
    assert not await relay.notice_emptied_queue()


async def test_what_a_dead_worker_took_and_never_claimed_is_sent_again_at_once(
    catalog: Catalog, relay: Relay, queue: BullmqQueue
) -> None:
    assert await relay.send_due() == 1
    taken = asyncio.Event()

    async def never(_: object) -> None:
        taken.set()
        await asyncio.Event().wait()

    worker = queue.worker(Stage.TRANSFER, never, concurrency=1)
    running = asyncio.create_task(worker.run())
    await taken.wait()
    try:
        assert await relay.send_due() == 0
        assert await relay.send_again_what_was_taken() == 1
        assert await relay.send_again_what_was_taken() == 0
        assert await relay.send_due() == 1
        assert await waiting(queue) == {delivery(1), delivery(2)}
    finally:
        await worker.close(grace=0)
        await running


async def test_what_a_worker_took_and_claimed_is_not_sent_again(
    catalog: Catalog, relay: Relay, queue: BullmqQueue, clock: ManualClock
) -> None:
    assert await relay.send_due() == 1
    taken = asyncio.Event()

    async def never(_: object) -> None:
        async with catalog.write("test") as connection:
            assert await reminders.claim(
                connection,
                subject_id=SUBJECT,
                number=1,
                owner="somebody",
                now=clock.now(),
                busy_ms=60_000,
            )
        taken.set()
        await asyncio.Event().wait()

    worker = queue.worker(Stage.TRANSFER, never, concurrency=1)
    running = asyncio.create_task(worker.run())
    await taken.wait()
    try:
        assert await relay.send_again_what_was_taken() == 0
    finally:
        await worker.close(grace=0)
        await running

"""Redis is gone: killed and started again, or frozen. Producers fail fast, workers wait."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.domain.errors import Part, PartDown
from drivefeed.ports import Delivery, Stage
from support.publish_jobs import consuming, job
from support.waiting import until

if TYPE_CHECKING:
    from drivefeed.queue import QueueEvent
    from support.valkey import ValkeyServer


async def answers_within_five_seconds(action: Any) -> None:
    began = time.monotonic()
    with pytest.raises(PartDown) as caught:
        await action
    assert time.monotonic() - began < 5
    assert caught.value.part is Part.QUEUE


@pytest.mark.parametrize(
    ("how", "seconds"),
    [
        pytest.param("killed", 15, marks=pytest.mark.slow),
        pytest.param("frozen", 15, marks=pytest.mark.slow),
        pytest.param("killed", 60, marks=pytest.mark.soak),
    ],
)
async def test_redis_gone_for_a_while(
    make_queue: Any, own_valkey: ValkeyServer, how: str, seconds: int
) -> None:
    queue = make_queue(own_valkey.url)
    done: list[str] = []
    in_flight, go_on = asyncio.Event(), asyncio.Event()

    async def run(delivery: Delivery) -> None:
        if delivery.job_id == "publish-i1-1":
            in_flight.set()
            await go_on.wait()
            await delivery.progress(90)
        done.append(delivery.job_id)

    async with consuming(queue, run) as worker:
        await queue.add([job(1), job(2)])
        await in_flight.wait()
        await until(lambda: "publish-i1-2" in done)
        await asyncio.sleep(1.2)  # appendfsync everysec
        own_valkey.kill() if how == "killed" else own_valkey.freeze()
        gone = time.monotonic()
        await answers_within_five_seconds(queue.add([job(3)]))
        await answers_within_five_seconds(queue.counts(Stage.PUBLISH))
        go_on.set()  # this job ends while there is no Redis to tell it to
        await asyncio.sleep(max(seconds - (time.monotonic() - gone), 0))
        assert worker.running
        own_valkey.start() if how == "killed" else own_valkey.thaw()
        back = time.monotonic()

        async def added() -> bool:
            with contextlib.suppress(PartDown):
                await queue.add([job(3)])
                return True
            return False

        await until(added, seconds=15)
        await until(lambda: "publish-i1-3" in done, seconds=30)
        print(f"{how} for {seconds} s: work resumed {time.monotonic() - back:.1f} s after")  # noqa: T201

        async def all_ended() -> bool:
            return bool((await queue.counts(Stage.PUBLISH))["completed"] == 3)

        await until(all_ended, seconds=70)
        assert worker.running


async def test_closing_ends_although_redis_is_gone(
    make_queue: Any, own_valkey: ValkeyServer
) -> None:
    queue = make_queue(own_valkey.url)
    stuck = asyncio.Event()

    async def run(_: Delivery) -> None:
        stuck.set()
        await asyncio.Event().wait()

    worker = queue.worker(Stage.PUBLISH, run, concurrency=3)
    running = asyncio.create_task(worker.run())
    await queue.add([job(1)])
    await stuck.wait()
    own_valkey.freeze()
    began = time.monotonic()
    await worker.close(grace=1)
    await running
    await queue.aclose()
    assert time.monotonic() - began < 10
    assert not [t for t in asyncio.all_tasks() if t is not asyncio.current_task()]


async def test_a_worker_started_before_redis_waits_for_it(
    make_queue: Any, own_valkey: ValkeyServer
) -> None:
    own_valkey.kill()
    done: list[str] = []
    events: list[QueueEvent] = []
    queue = make_queue(own_valkey.url, on_event=events.append)

    async def run(delivery: Delivery) -> None:
        done.append(delivery.job_id)

    async with consuming(queue, run) as worker:
        await asyncio.sleep(0.5)
        assert worker.running
        own_valkey.start()
        await queue.add([job(1)])
        await until(lambda: done, seconds=15)


async def test_emptying_redis_under_a_running_job_leaves_the_worker_alive(
    make_queue: Any, own_valkey: ValkeyServer
) -> None:
    queue = make_queue(own_valkey.url)
    done: list[str] = []
    in_flight, go_on = asyncio.Event(), asyncio.Event()

    async def run(delivery: Delivery) -> None:
        in_flight.set()
        await go_on.wait()
        done.append(delivery.job_id)

    async with consuming(queue, run, concurrency=1) as worker:
        await queue.set_generation("g1")
        await queue.add([job(1), job(2)])
        await in_flight.wait()
        own_valkey.flush()
        go_on.set()
        await until(lambda: done)
        assert await queue.generation() is None
        await queue.add([job(3)])
        await until(lambda: len(done) == 2)
        assert worker.running
    assert done == ["publish-i1-1", "publish-i1-3"]

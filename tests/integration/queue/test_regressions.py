"""What BullMQ for Python and redis-py did to us once, each seen by running it."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.domain.errors import DrivefeedError
from drivefeed.ports import Delivery, Stage
from support.publish_jobs import consuming, job, state_of
from support.waiting import until

if TYPE_CHECKING:
    from drivefeed.queue import QueueEvent
    from support.valkey import ValkeyServer


@pytest.mark.slow
async def test_a_delayed_job_on_an_idle_queue_starts_on_time(
    make_queue: Any, valkey_url: str
) -> None:
    # redis-py's read timeout of 5 s once made this take 471 s.
    queue = make_queue(valkey_url)
    started: list[float] = []

    async def run(_: Delivery) -> None:
        started.append(time.monotonic())

    async with consuming(queue, run):
        await queue.add([job(1)])
        await until(lambda: started)
        await asyncio.sleep(1.2)  # long enough for the worker to be in its idle wait
        began = time.monotonic()
        await queue.add([job(2, delay_ms=8_000)])
        await until(lambda: len(started) == 2, seconds=15)
    took = started[1] - began
    assert 7.9 <= took < 10


async def test_a_url_cannot_bring_the_short_read_timeout_back(
    make_queue: Any, valkey_url: str
) -> None:
    queue = make_queue(f"{valkey_url}?socket_timeout=5")
    worker = queue.worker(Stage.PUBLISH, None, concurrency=1)
    pool = worker._loop.blockingRedisConnection.conn.connection_pool
    assert pool.connection_kwargs["socket_timeout"] == 30
    await worker.close(grace=0)


async def test_a_cancelled_job_is_a_failed_attempt_and_the_worker_lives(
    make_queue: Any, valkey_server: ValkeyServer, valkey_url: str
) -> None:
    queue = make_queue(valkey_url)
    runs: list[tuple[str, int]] = []
    first: list[asyncio.Task[Any]] = []

    async def run(delivery: Delivery) -> None:
        runs.append((delivery.job_id, delivery.attempt))
        if len(runs) == 1:
            first.append(asyncio.current_task())  # type: ignore[arg-type]
            await asyncio.Event().wait()

    async with consuming(queue, run, concurrency=1) as worker:
        await queue.add([job(1)])
        await until(lambda: first)
        first[0].cancel()
        await queue.add([job(2)])
        await until(lambda: len(runs) == 3)
        assert worker.running
    assert sorted(runs) == [("publish-i1-1", 1), ("publish-i1-1", 2), ("publish-i1-2", 1)]
    assert "cancelled" in (await state_of(valkey_server, "publish-i1-1"))["failedReason"]


async def test_a_job_that_cancels_itself_does_not_end_the_loop(
    make_queue: Any, valkey_url: str
) -> None:
    queue = make_queue(valkey_url)
    runs: list[int] = []

    async def run(delivery: Delivery) -> None:
        runs.append(delivery.attempt)
        if delivery.attempt == 1:
            raise asyncio.CancelledError
        async with asyncio.timeout(5):  # a timeout in a later attempt works as ever
            await asyncio.sleep(0)

    async with consuming(queue, run) as worker:
        await queue.add([job(1)])
        await until(lambda: runs == [1, 2])
        assert worker.running


async def test_cancelling_every_task_of_a_worker_leaves_it_alive(
    make_queue: Any, valkey_url: str
) -> None:
    queue = make_queue(valkey_url)
    done: list[str] = []

    async def run(delivery: Delivery) -> None:
        done.append(delivery.job_id)

    async with consuming(queue, run) as worker:
        await queue.add([job(1)])
        await until(lambda: done)
        for _ in range(3):
            for task in list(worker._loop.processing):
                task.cancel()
            await asyncio.sleep(0.05)
        await queue.add([job(2)])
        await until(lambda: "publish-i1-2" in done)
        assert worker.running


async def test_a_listener_that_raises_breaks_nothing(
    make_queue: Any, valkey_server: ValkeyServer, valkey_url: str
) -> None:
    told: list[str] = []

    def angry(event: QueueEvent) -> None:
        told.append(event.kind)
        raise RuntimeError("a listener's own fault")

    queue = make_queue(valkey_url, on_event=angry)

    async def run(_: Delivery) -> str:
        return "fine"

    async with consuming(queue, run) as worker:
        worker._loop.on("completed", lambda *_: 1 / 0)
        await queue.add([job(1)])

        async def completed() -> bool:
            return bool((await queue.counts(Stage.PUBLISH))["completed"] == 1)

        await until(completed)
        await until(lambda: told == ["active", "completed"])
        assert worker.running
    assert (await state_of(valkey_server, "publish-i1-1"))["returnvalue"] == '"fine"'


async def test_a_worker_whose_loop_ends_by_itself_says_so(make_queue: Any, valkey_url: str) -> None:
    queue = make_queue(valkey_url)

    async def run(_: Delivery) -> None: ...

    worker = queue.worker(Stage.PUBLISH, run, concurrency=1)
    running = asyncio.create_task(worker.run())
    await until(lambda: worker._loop.running)
    worker._task.cancel()  # stands for whatever may end the loop in silence
    with pytest.raises(DrivefeedError, match="ended by itself"):
        await running
    assert not worker.running


async def test_a_result_that_is_no_json_does_not_fail_the_job(
    make_queue: Any, valkey_server: ValkeyServer, valkey_url: str
) -> None:
    queue = make_queue(valkey_url)

    async def run(_: Delivery) -> Any:
        return {"nan": float("nan"), "self": object()}

    async with consuming(queue, run):
        await queue.add([job(1)])

        async def completed() -> bool:
            return bool((await queue.counts(Stage.PUBLISH))["completed"] == 1)

        await until(completed)


async def test_what_reaches_redis_of_an_error_has_no_secrets_and_an_end(
    make_queue: Any, valkey_server: ValkeyServer, valkey_url: str
) -> None:
    queue = make_queue(valkey_url)
    secret = "eyJ0eXAiOiJKV1Qi.eyJhdWQiOiIwMDAw.c2lnbmF0dXJl"

    def deep(n: int) -> None:
        if n:
            deep(n - 1)
        raise RuntimeError(
            f"GET https://host/download.aspx?UniqueId=1&tempauth={secret} failed, "
            f"Authorization: Bearer {secret}, redis://user:hunter2@host:1/0 " + "x" * 20_000
        )

    async def run(_: Delivery) -> None:
        deep(60)

    async with consuming(queue, run):
        await queue.add([job(1, attempts=1)])

        async def failed() -> bool:
            return bool((await queue.counts(Stage.PUBLISH))["failed"] == 1)

        await until(failed)
    kept = await state_of(valkey_server, "publish-i1-1")
    everything = json.dumps(kept)
    assert secret not in everything
    assert "hunter2" not in everything
    assert len(everything) < 10_000
    assert "tempauth=***" in kept["failedReason"]
    (trace,) = json.loads(kept["stacktrace"])
    assert "Traceback" in trace
    assert "deep(n - 1)" in trace  # the job's own frames, which BullMQ would not see


async def test_what_is_in_redis_can_be_read_by_node(
    make_queue: Any, valkey_server: ValkeyServer, valkey_url: str
) -> None:
    queue = make_queue(valkey_url)
    await queue.add([job(1), job(2, delay_ms=30_000)])
    for number in (1, 2):
        kept = await state_of(valkey_server, f"publish-i1-{number}")
        assert kept["timestamp"].isdigit()
        assert kept["delay"].isdigit()
        assert json.loads(kept["data"])["number"] == number
        assert json.loads(kept["opts"])["removeOnComplete"] == {"count": 5000, "age": 86400}
        assert json.loads(kept["opts"])["removeOnFail"] == {"count": 10000, "age": 1209600}
        assert json.loads(kept["opts"])["attempts"] == 3


async def test_the_board_finds_each_worker_once(
    make_queue: Any, valkey_server: ValkeyServer, valkey_url: str
) -> None:
    queue = make_queue(valkey_url)
    ran: list[int] = []

    async def run(_: Delivery) -> None:
        ran.append(1)

    async with consuming(queue, run):
        await queue.add([job(1)])
        await until(lambda: ran)
        with valkey_server.client() as client:
            names = [c["name"] for c in client.client_list()]
    # "cHVibGlzaA==" is base64 of "publish", as BullMQ for Node encodes it.
    assert names.count("reg:cHVibGlzaA==:w:host:1-(test)") == 1


async def test_a_job_added_by_hand_with_a_strange_payload_fails_at_once(
    make_queue: Any, valkey_url: str
) -> None:
    queue = make_queue(valkey_url)
    ran: list[int] = []

    async def run(_: Delivery) -> None:
        ran.append(1)

    await queue._producer(Stage.PUBLISH).add("publish", {"url": "x"}, {"attempts": 9})
    async with consuming(queue, run):

        async def failed() -> bool:
            return bool((await queue.counts(Stage.PUBLISH))["failed"] == 1)

        await until(failed)
    assert not ran


async def test_a_job_fetched_while_closing_is_handed_back_and_not_begun(
    make_queue: Any, valkey_server: ValkeyServer, valkey_url: str
) -> None:
    queue = make_queue(valkey_url)
    worker = queue.worker(Stage.PUBLISH, None, concurrency=1)
    await worker._loop.connect()
    await queue.add([job(1)])
    worker._loop.closing = True  # as where the answer of Redis arrives just after close() began
    assert await worker._loop.getNextJob("token:1") is None
    counts = await queue.counts(Stage.PUBLISH)
    assert (counts["active"], counts["waiting"] + counts["delayed"]) == (0, 1)
    assert (await state_of(valkey_server, "publish-i1-1")).get("atm", "0") == "0"
    await worker.close(grace=0)

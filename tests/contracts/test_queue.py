"""The contract of the Queue port. Every implementation passes it against the real thing."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.ports import Delivery, JobSpec, Queue, Stage
from drivefeed.queue import BullmqQueue
from support.valkey import valkey_server, valkey_url  # noqa: F401  # fixtures
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable


class HalfIds:
    def new(self) -> str:
        return "00000000-0000-4000-8000-000000000000"

    def fraction(self) -> float:
        return 0.5


@pytest.fixture(params=["bullmq"])
async def queue(request: pytest.FixtureRequest) -> AsyncIterator[Queue]:
    url = request.getfixturevalue("valkey_url")
    made: Queue = BullmqQueue(url, prefix="contract", name="test", ids=HalfIds())
    yield made
    await made.aclose()


def job(number: int, *, subject: str = "i1", stage: Stage = Stage.TRANSFER, **more: Any) -> JobSpec:
    payload = {
        "schema": 1,
        "org_id": "o1",
        "document_id": "d1",
        "import_id": subject,
        "round": 1,
        "number": number,
    }
    return JobSpec(stage, f"{stage.value}-{subject}-{number}", payload, **more)


@asynccontextmanager
async def consuming(
    queue: Queue,
    run: Callable[[Delivery], Awaitable[Any]],
    *,
    stage: Stage = Stage.TRANSFER,
    concurrency: int = 2,
) -> AsyncIterator[Any]:
    worker = queue.worker(stage, run, concurrency=concurrency)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        try:
            yield worker
        finally:
            await worker.close(grace=5)


async def test_a_job_is_delivered_with_its_payload(queue: Queue) -> None:
    seen: list[Delivery] = []

    async def run(delivery: Delivery) -> str:
        seen.append(delivery)
        await delivery.progress(50)
        return "stored"

    async with consuming(queue, run) as worker:
        await queue.add([job(1)])
        await until(lambda: seen)
        assert worker.running
    assert not worker.running
    assert seen[0].job_id == "transfer-i1-1"
    assert seen[0].payload["import_id"] == "i1"
    assert (seen[0].attempt, seen[0].attempts) == (1, 3)
    assert (await queue.counts(Stage.TRANSFER))["completed"] == 1


async def test_the_same_id_added_twice_is_one_job(queue: Queue) -> None:
    await queue.add([job(1), job(1)])
    await queue.add([job(1)])
    assert (await queue.counts(Stage.TRANSFER))["waiting"] == 1


async def test_many_jobs_over_several_stages_at_once(queue: Queue) -> None:
    jobs = [job(n, stage=stage) for stage in (Stage.TRANSFER, Stage.POLL) for n in range(600)]
    await queue.add(jobs)
    assert (await queue.counts(Stage.TRANSFER))["waiting"] == 600
    assert (await queue.counts(Stage.POLL))["waiting"] == 600


async def test_cleared_it_takes_the_same_ids_again(queue: Queue) -> None:
    await queue.set_generation("before")
    await queue.add([job(n) for n in range(1_200)])
    await queue.clear()
    assert await queue.generation() is None
    assert (await queue.counts(Stage.TRANSFER))["waiting"] == 0
    await queue.add([job(1)])
    assert (await queue.counts(Stage.TRANSFER))["waiting"] == 1


async def test_counts_tell_the_states_apart(queue: Queue) -> None:
    await queue.add([job(1), job(2, delay_ms=60_000), job(3, priority=2)])
    counts = await queue.counts(Stage.TRANSFER)
    assert counts == {
        "waiting": 2,
        "active": 0,
        "delayed": 1,
        "completed": 0,
        "failed": 0,
        "paused": 0,
    }


async def test_what_a_worker_took_is_active_until_it_ended(queue: Queue) -> None:
    go = asyncio.Event()

    async def run(_: Delivery) -> None:
        await go.wait()

    async def active() -> bool:
        return await queue.active(Stage.TRANSFER) == {"transfer-i1-1"}

    await queue.add([job(1), job(2, delay_ms=60_000)])
    assert await queue.active(Stage.TRANSFER) == set()
    async with consuming(queue, run):
        await until(active)
        assert await queue.active(Stage.POLL) == set()
        go.set()

        async def ended() -> bool:
            return await queue.active(Stage.TRANSFER) == set()

        await until(ended)


async def test_jobs_without_priority_come_first(queue: Queue) -> None:
    order: list[str] = []

    async def run(delivery: Delivery) -> None:
        order.append(delivery.job_id)

    await queue.add([job(1, priority=9), job(2, priority=1), job(3)])
    async with consuming(queue, run, concurrency=1):
        await until(lambda: len(order) == 3)
    assert order == ["transfer-i1-3", "transfer-i1-2", "transfer-i1-1"]


async def test_a_fault_is_tried_again_until_the_attempts_are_used(queue: Queue) -> None:
    attempts: list[int] = []

    async def run(delivery: Delivery) -> None:
        attempts.append(delivery.attempt)
        raise RuntimeError("no luck")

    async with consuming(queue, run, stage=Stage.PUBLISH):
        await queue.add([job(1, stage=Stage.PUBLISH, attempts=2)])

        async def failed() -> bool:
            return (await queue.counts(Stage.PUBLISH))["failed"] == 1

        await until(failed)
    assert attempts == [1, 2]


async def test_concurrency_is_kept(queue: Queue) -> None:
    at_once = most = done = 0

    async def run(_: Delivery) -> None:
        nonlocal at_once, most, done
        at_once += 1
        most = max(most, at_once)
        await asyncio.sleep(0.01)
        at_once -= 1
        done += 1

    await queue.add([job(n) for n in range(30)])
    async with consuming(queue, run, concurrency=3):
        await until(lambda: done == 30)
    assert most == 3


async def test_closing_lets_a_running_job_finish_and_takes_no_other(queue: Queue) -> None:
    started, go, ended = asyncio.Event(), asyncio.Event(), []

    async def run(delivery: Delivery) -> None:
        started.set()
        await go.wait()
        ended.append(delivery.job_id)

    worker = queue.worker(Stage.TRANSFER, run, concurrency=1)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        await queue.add([job(1), job(2)])
        await started.wait()
        closing = group.create_task(worker.close(grace=20))
        await asyncio.sleep(0)
        go.set()
        await closing
    assert ended == ["transfer-i1-1"]
    counts = await queue.counts(Stage.TRANSFER)
    assert (counts["completed"], counts["waiting"], counts["active"]) == (1, 1, 0)


async def test_a_job_that_does_not_finish_in_the_grace_is_handed_back(queue: Queue) -> None:
    started = asyncio.Event()

    async def never(_: Delivery) -> None:
        started.set()
        await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        worker = queue.worker(Stage.TRANSFER, never, concurrency=1)
        group.create_task(worker.run())
        await queue.add([job(1)])
        await started.wait()
        await worker.close(grace=0.1)
    counts = await queue.counts(Stage.TRANSFER)
    assert (counts["active"], counts["failed"]) == (0, 0)
    attempts: list[int] = []

    async def run(delivery: Delivery) -> None:
        attempts.append(delivery.attempt)

    async with consuming(queue, run):
        await until(lambda: attempts)
    assert attempts == [1]  # being handed back used no attempt


async def test_cancelling_run_hands_back_too(queue: Queue) -> None:
    started = asyncio.Event()

    async def never(_: Delivery) -> None:
        started.set()
        await asyncio.Event().wait()

    worker = queue.worker(Stage.TRANSFER, never, concurrency=1)
    running = asyncio.create_task(worker.run())
    await queue.add([job(1)])
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not worker.running
    assert (await queue.counts(Stage.TRANSFER))["active"] == 0


async def test_the_sentinel_is_gone_with_everything_else(
    queue: Queue,
    valkey_server: Any,  # noqa: F811  # the fixture
) -> None:
    assert await queue.generation() is None
    await queue.set_generation("g1")
    assert await queue.generation() == "g1"
    valkey_server.flush()
    assert await queue.generation() is None


@pytest.mark.parametrize(
    "payload",
    [
        {"name": "secret plan.docx"},
        {"org_id": "https://host/download?tempauth=abc"},
        {"round": 1.5},
        {"number": True},
        {"document_id": None},
    ],
)
async def test_content_never_gets_into_a_payload(queue: Queue, payload: dict[str, Any]) -> None:
    good = job(1)
    with pytest.raises(ValueError, match="queue transfer"):
        await queue.add([job(2), JobSpec(good.stage, good.job_id, {**good.payload, **payload})])
    assert (await queue.counts(Stage.TRANSFER))["waiting"] == 0


@pytest.mark.parametrize("job_id", ["transfer:i1:1", "17", "transfer-i1", "poll-i1-1", ""])
async def test_job_ids_that_node_refuses_are_refused(queue: Queue, job_id: str) -> None:
    with pytest.raises(ValueError, match="does not have the form"):
        await queue.add([JobSpec(Stage.TRANSFER, job_id, job(1).payload)])


async def test_check_is_silent_where_all_is_well(queue: Queue) -> None:
    await queue.check()

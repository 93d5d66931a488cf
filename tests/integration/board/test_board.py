"""What an operator sees on the board, and what its buttons do to jobs that Python works on."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from integration.board.rig import BOARD, Bench, until

if TYPE_CHECKING:
    from bullmq import Job

    from integration.board.rig import Board, Valkey

HOUR_MS = 3_600_000


class Work:
    """A processor whose jobs fail, stay or finish as the test says, and which counts its runs."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.failing: set[str] = set()
        self.staying: dict[str, asyncio.Event] = {}

    async def __call__(self, job: Job, _token: str) -> dict[str, Any]:
        self.ran.append(job.id)
        await job.updateProgress({"step": "streaming", "progress": 40})
        if job.id in self.failing:
            raise ValueError(f"the file of {job.id} is damaged")
        if job.id in self.staying:
            await self.staying[job.id].wait()
        await job.updateProgress({"step": "stored", "progress": 100})
        return {"outcome": "stored", "bytes": 2048}


@pytest.fixture
def work() -> Work:
    return Work()


async def test_lists_every_queue_of_the_table_with_what_its_stage_does(board: Board) -> None:
    table = json.loads((BOARD / "queues.json").read_text())["queues"]

    shown = await board.queues()

    assert list(shown) == [row["name"] for row in table]
    for row in table:
        assert row["purpose"] in shown[row["name"]]["description"]
        assert f"{row['concurrency']} at once" in shown[row["name"]]["description"]


async def test_shows_jobs_in_all_states_with_progress_result_and_traceback(
    board: Board, bench: Bench, work: Work
) -> None:
    work.failing.add("transfer-failed-1")
    work.staying["transfer-active-1"] = asyncio.Event()
    await bench.add("transfer", "transfer-later-1", delay=HOUR_MS)
    for job_id in ("transfer-done-1", "transfer-failed-1", "transfer-active-1"):
        await bench.add("transfer", job_id)
    bench.work("transfer", work)

    async def under_way() -> bool:
        return work.ran == ["transfer-done-1", "transfer-failed-1", "transfer-active-1"]

    await until(under_way, "the worker to reach the job that stays")
    await bench.add("transfer", "transfer-waiting-1")

    async def progress_of_active() -> bool:
        shown = await board.job("transfer", "transfer-active-1")
        return bool(shown["job"]["progress"] != 0)

    await until(progress_of_active, "the progress of the active job")
    queue = (await board.queues(active="transfer"))["transfer"]
    counts = queue["counts"]
    assert {state: counts[state] for state in ("waiting", "active", "delayed")} == {
        "waiting": 1,
        "active": 1,
        "delayed": 1,
    }
    assert (counts["completed"], counts["failed"]) == (1, 1)
    assert queue["hasWorkers"] is True
    jobs = {job["id"]: job for job in queue["jobs"]}
    assert len(jobs) == 5
    assert jobs["transfer-done-1"]["progress"] == {"step": "stored", "progress": 100}
    assert jobs["transfer-done-1"]["returnValue"] == {"outcome": "stored", "bytes": 2048}
    assert jobs["transfer-active-1"]["progress"] == {"step": "streaming", "progress": 40}
    assert "the file of transfer-failed-1 is damaged" in jobs["transfer-failed-1"]["failedReason"]
    assert "Traceback" in "".join(jobs["transfer-failed-1"]["stacktrace"])
    assert "ValueError" in "".join(jobs["transfer-failed-1"]["stacktrace"])
    assert jobs["transfer-later-1"]["delay"] == HOUR_MS
    for state, job_id in {
        "waiting": "transfer-waiting-1",
        "active": "transfer-active-1",
        "delayed": "transfer-later-1",
        "completed": "transfer-done-1",
        "failed": "transfer-failed-1",
    }.items():
        of_state = (await board.queues(active="transfer", status=state))["transfer"]["jobs"]
        assert [job["id"] for job in of_state] == [job_id], state
        assert (await board.job("transfer", job_id))["status"] == state


async def test_names_the_workers_of_a_queue(board: Board, bench: Bench, work: Work) -> None:
    bench.work("poll", work)

    async def named() -> bool:
        answer = await board.client.get("/api/queues/poll/workers")
        return "bench" in {worker["name"] for worker in answer.json()["workers"]}

    await until(named, "the worker to be listed by its name")


async def test_retry_runs_a_failed_job_again(board: Board, bench: Bench, work: Work) -> None:
    work.failing.add("submit-a-1")
    await bench.add("submit", "submit-a-1")
    bench.work("submit", work)
    await until(lambda: bench.state_is("submit", "submit-a-1", "failed"), "the job to fail")
    work.failing.clear()

    assert await board.put("submit/submit-a-1/retry") == 204

    await until(lambda: bench.state_is("submit", "submit-a-1", "completed"), "the second run")
    assert work.ran == ["submit-a-1", "submit-a-1"]


async def test_promote_runs_a_delayed_job_now(board: Board, bench: Bench, work: Work) -> None:
    await bench.add("poll", "poll-a-1", delay=HOUR_MS)
    bench.work("poll", work)

    assert await board.put("poll/poll-a-1/promote") == 204

    await until(lambda: bench.state_is("poll", "poll-a-1", "completed"), "the promoted job")


async def test_a_paused_queue_hands_out_nothing_until_it_is_resumed(
    board: Board, bench: Bench, work: Work
) -> None:
    assert await board.put("withdraw/pause") == 200
    await bench.add("withdraw", "withdraw-a-1")
    worker = bench.work("withdraw", work)

    async def looked_and_found_nothing() -> bool:
        return bool(worker.drained)

    await until(looked_and_found_nothing, "the worker to look for jobs")
    assert await bench.queue("withdraw").isPaused()
    assert (await board.queues())["withdraw"]["isPaused"] is True
    assert work.ran == []

    assert await board.put("withdraw/resume") == 200

    await until(lambda: bench.state_is("withdraw", "withdraw-a-1", "completed"), "the job to run")
    assert (await board.queues())["withdraw"]["isPaused"] is False


async def test_pausing_everything_pauses_every_queue(board: Board, bench: Bench) -> None:
    assert await board.put("pause") == 200
    assert all(queue["isPaused"] for queue in (await board.queues()).values())
    assert await board.put("resume") == 200
    assert not any(queue["isPaused"] for queue in (await board.queues()).values())


async def test_delete_removes_a_delivery_which_can_be_sent_again_under_the_same_id(
    board: Board, bench: Bench, work: Work
) -> None:
    await bench.add("admit", "admit-a-7")

    assert await board.put("admit/admit-a-7/clean") == 204

    assert (await board.queues())["admit"]["counts"]["waiting"] == 0
    bench.work("admit", work)
    await bench.add("admit", "admit-a-7")
    await until(lambda: bench.state_is("admit", "admit-a-7", "completed"), "the job sent again")
    assert work.ran == ["admit-a-7"]


async def test_a_job_in_a_worker_s_hands_is_not_deleted(
    board: Board, bench: Bench, work: Work
) -> None:
    stay = work.staying["index-a-1"] = asyncio.Event()
    await bench.add("index", "index-a-1")
    bench.work("index", work)
    await until(lambda: bench.state_is("index", "index-a-1", "active"), "the job to start")

    assert await board.put("index/index-a-1/clean") == 409

    stay.set()
    await until(lambda: bench.state_is("index", "index-a-1", "completed"), "the job to finish")


async def test_looking_writes_nothing_to_redis(board: Board, valkey: Valkey) -> None:
    await board.queues(active="transfer")
    assert (await board.client.get("/")).is_success
    with valkey.client() as client:
        assert list(client.scan_iter("*")) == []


async def test_the_page_and_its_scripts_come_from_the_board_alone(board: Board) -> None:
    page = await board.client.get("/")

    assert "drivefeed queues" in page.text
    policy = page.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert page.headers["x-content-type-options"] == "nosniff"
    assert page.headers["cache-control"] == "no-store"
    assert "x-powered-by" not in page.headers


async def test_jobs_under_another_prefix_are_not_shown(
    board: Board, bench: Bench, valkey: Valkey
) -> None:
    await bench.add("transfer", "transfer-a-1")
    assert (await board.queues())["transfer"]["counts"]["waiting"] == 1
    elsewhere = Bench(valkey.url, prefix="elsewhere")
    await elsewhere.add("transfer", "transfer-b-1")
    await elsewhere.add("transfer", "transfer-c-1")
    await elsewhere.close()
    assert (await board.queues())["transfer"]["counts"]["waiting"] == 1

"""The board's buttons over a running drivefeed: what retry, promote, pause and delete come to."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import subprocess
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from drivefeed.bootstrap import open_memory
from drivefeed.catalog.listing import ListedFile, list_files
from drivefeed.catalog.passport import passports
from drivefeed.settings import Settings
from integration.board.rig import BOARD_PASSWORD, REPOSITORY, Board, until
from support import forks

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from drivefeed.catalog.engine import Catalog
    from integration.board.rig import BoardServer

pytestmark = pytest.mark.slow


class Demo:
    """A `drivefeed demo` over a folder, in a process of its own.

    One attempt at a transfer is enough, so that a failed one asks for a person.
    """

    def __init__(self, home: Path) -> None:
        self.home = home
        self.folder = home / "Docs"
        self.folder.mkdir()
        (self.folder / "Start.md").write_text("Pilots board north of the breakwater.\n")
        kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        self.environment = {
            **kept,
            "PYTHONPATH": str(REPOSITORY / "src"),
            "DRIVEFEED_ATTEMPTS": '{"transfer": 1}',
        }
        with (home / "demo.log").open("wb") as log:
            self.process = forks.Fork(
                forks.DRIVEFEED,
                ("demo", "Docs", "--grace", "0"),
                cwd=home,
                env=self.environment,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def data(self) -> Path:
        (found,) = self.home.glob("drivefeed-demo/data-*")
        return found

    def is_up(self) -> bool:
        assert self.process.poll() is None, (self.home / "demo.log").read_text()
        return bool(list(self.home.glob("drivefeed-demo/data-*/daemon.json")))

    def exports(self) -> dict[str, str]:
        """Return what `drivefeed board-env` tells the board."""
        answer = forks.run(
            forks.DRIVEFEED, ("board-env",), cwd=self.home, env=self.environment, timeout=60
        )
        assert answer.returncode == 0, answer.stderr
        pairs = (line.removeprefix("export ").split("=", 1) for line in answer.stdout.splitlines())
        return {name: shlex.split(value)[0] for name, value in pairs}

    async def faults(self, method: str, fault: dict[str, Any] | None = None) -> None:
        admin = json.loads((self.data / "graphsim.json").read_text())["admin_url"]
        async with httpx.AsyncClient(trust_env=False) as client:
            answer = await client.request(method, f"{admin}/faults", json=fault)
            answer.raise_for_status()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()


@pytest.fixture
async def demo(tmp_path: Path) -> AsyncIterator[Demo]:
    running = Demo(tmp_path)

    async def up() -> bool:
        return running.is_up()

    try:
        await until(up, "the demo to run")
        yield running
    finally:
        await asyncio.to_thread(running.end)


@pytest.fixture
async def catalog(demo: Demo) -> AsyncIterator[Catalog]:
    async with open_memory(Settings(data_dir=demo.data)) as opened:
        yield opened


@pytest.fixture
async def board(demo: Demo, start_board: Callable[..., BoardServer]) -> AsyncIterator[Board]:
    server = start_board(**demo.exports(), BULL_BOARD_PASSWORD=BOARD_PASSWORD)
    url = server.wait_until_ready()
    auth = ("admin", BOARD_PASSWORD)
    async with httpx.AsyncClient(base_url=url, auth=auth, timeout=30, trust_env=False) as client:

        async def connected() -> bool:
            return (await client.get("/healthz")).is_success

        await until(connected, "the board to reach the daemon's queue")
        yield Board(client)


async def file(catalog: Catalog, name: str) -> ListedFile | None:
    return next((one for one in await list_files(catalog) if one.path == name), None)


async def stands(catalog: Catalog, name: str, standing: str, why: str | None = None) -> bool:
    one = await file(catalog, name)
    return one is not None and one.standing == standing and why in {None, one.why}


async def job_of(board: Board, catalog: Catalog, queue: str, status: str, name: str) -> str | None:
    """Return the id of a file's job in a state, or None."""
    one = await file(catalog, name)
    jobs = (await board.queues(active=queue, status=status))[queue]["jobs"]
    found = [
        job["id"] for job in jobs if one is not None and job["data"]["import_id"] == one.import_id
    ]
    return str(found[0]) if found else None


async def wait_for_job(board: Board, catalog: Catalog, queue: str, status: str, name: str) -> str:
    found: list[str] = []

    async def there() -> bool:
        job_id = await job_of(board, catalog, queue, status, name)
        found.extend([job_id] if job_id else [])
        return bool(found)

    await until(there, f"a {status} job of {name} in {queue}")
    return found[0]


async def test_retry_runs_an_import_under_attention_and_clears_it(
    demo: Demo, catalog: Catalog, board: Board
) -> None:
    await demo.faults(
        "POST", {"kind": "status", "match": {"op": "content"}, "status": 500, "count": -1}
    )
    (demo.folder / "Buoys.md").write_text("The green buoy was moved in June.\n")
    await until(
        lambda: stands(catalog, "Buoys.md", "failed", "attempts_exhausted"), "the file to fail"
    )
    job_id = await wait_for_job(board, catalog, "transfer", "failed", "Buoys.md")
    shown = await board.job("transfer", job_id)
    assert "500" in shown["job"]["failedReason"]
    await demo.faults("DELETE")

    assert await board.put(f"transfer/{job_id}/retry") == 204

    await until(lambda: stands(catalog, "Buoys.md", "searchable"), "the retried file")
    (story,) = await passports(catalog, "Buoys.md")
    (version,) = story.versions
    assert version["attention"] is None
    assert [e["event"] for e in version["events"]][:4] == [
        "admitted",
        "attention",
        "retry",
        "stored",
    ]
    assert (await board.job("transfer", job_id))["status"] == "completed"


async def test_promote_runs_a_delayed_job_now_and_a_paused_queue_waits(
    demo: Demo, catalog: Catalog, board: Board
) -> None:
    assert await board.put("index/pause") == 200
    (demo.folder / "Locks.md").write_text("The sea lock opens two hours before high water.\n")
    delayed = await wait_for_job(board, catalog, "poll", "delayed", "Locks.md")
    job = (await board.job("poll", delayed))["job"]
    due_at = job["timestamp"] + job["delay"]

    assert await board.put(f"poll/{delayed}/promote") == 204

    async def ran() -> bool:
        return (await board.job("poll", delayed))["status"] == "completed"

    await until(ran, "the promoted job to run")
    assert (await board.job("poll", delayed))["job"]["processedOn"] < due_at
    again = await wait_for_job(board, catalog, "poll", "delayed", "Locks.md")
    assert again != delayed
    assert (await board.queues())["index"]["isPaused"] is True
    assert await stands(catalog, "Locks.md", "in_progress", "submitted")

    assert await board.put("index/resume") == 200

    await until(lambda: stands(catalog, "Locks.md", "searchable"), "the file after the pause")


async def test_a_deleted_delivery_is_brought_back_by_its_reminder(
    demo: Demo, catalog: Catalog, board: Board
) -> None:
    assert await board.put("transfer/pause") == 200
    (demo.folder / "Tides.md").write_text("Neap tides follow the half moon by two days.\n")
    deleted = await wait_for_job(board, catalog, "transfer", "latest", "Tides.md")

    assert await board.put(f"transfer/{deleted}/clean") == 204

    assert await board.put("transfer/resume") == 200
    await until(lambda: stands(catalog, "Tides.md", "searchable"), "the file after its reminder")
    one = await file(catalog, "Tides.md")
    assert one is not None
    jobs = (await board.queues(active="transfer", status="completed"))["transfer"]["jobs"]
    ran = [job["id"] for job in jobs if job["data"]["import_id"] == one.import_id]
    assert len(ran) == 1
    assert ran != [deleted]

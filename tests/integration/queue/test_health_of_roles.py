"""Every role answers whether it lives and whether it is ready, and `drivefeed health` finds it."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from drivefeed.bootstrap import Surroundings, open_memory, open_parts
from drivefeed.catalog.parts_down import parts_down
from drivefeed.cli.health import health_of
from drivefeed.daemon import Daemon
from drivefeed.domain.errors import Part, PartDown
from drivefeed.roles import SCHEDULER, worker_for
from drivefeed.services.health import Health
from drivefeed.services.loop import LoopWatch
from drivefeed.settings import Settings
from drivefeed.stages.breaker import Breakers
from drivefeed.web.health import HealthServer, serving_health
from drivefeed.web.server import StatusPage
from support.clock import CountedIds, ManualClock
from support.valkey import free_port
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.roles import Role


@asynccontextmanager
async def running(settings: Settings, role: Role) -> AsyncIterator[Daemon]:
    async with open_parts(settings, Surroundings.real()) as parts:
        daemon = Daemon(parts, role=role)
        task = asyncio.create_task(daemon.run())
        ready = asyncio.create_task(daemon.ready.wait())
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED, timeout=60)
        assert daemon.ready.is_set(), task
        try:
            yield daemon
        finally:
            if not daemon.stopping.is_set():
                daemon.stop()
            await task


def settings_for(folder: Path, valkey_url: str, **more: Any) -> Settings:
    return Settings(
        data_dir=folder,
        redis_url=valkey_url,
        queue_prefix=folder.name,
        shutdown_seconds=2.0,
        **more,
    )


async def test_the_roles_without_the_index_answer_too(tmp_path: Path, valkey_url: str) -> None:
    settings = settings_for(tmp_path / "shared", valkey_url)
    assert (await health_of(settings))["status"] == "absent"
    async with running(settings, SCHEDULER):
        one = await health_of(settings, ready=True)
        assert (one["status"], one["role"], one["stuck"]) == ("ok", "scheduler", {})
        async with running(settings, worker_for(["transfer"])) as worker:
            both = await health_of(settings)
            assert both["status"] == "ok"
            assert {each["role"] for each in both["processes"]} == {"scheduler", "worker"}
            worker.breakers.note(Part.STORE, "It does not answer.")
            assert (await health_of(settings))["down"] == {"store": "It does not answer."}
    assert (await health_of(settings))["status"] == "absent"


async def test_a_port_of_the_settings_is_served_and_asked(tmp_path: Path, valkey_url: str) -> None:
    port = free_port()
    settings = settings_for(tmp_path / "alone", valkey_url, health_port=port)
    assert (await health_of(settings))["status"] == "silent"
    async with (
        running(settings, worker_for(["transfer"])) as daemon,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client,
    ):
        assert (await client.get("/readyz")).json() == {
            "ready": True,
            "words": "",
            "role": "worker",
        }
        assert b"drivefeed_breaker_open" in (await client.get("/metrics")).content
        daemon.breakers.note(Part.STORE, "It does not answer.")
        found = await health_of(settings)
        assert (found["status"], found["down"]) == ("ok", {"store": "It does not answer."})
        daemon.stopping.set()
        assert (await health_of(settings, ready=True))["status"] in {"starting", "silent"}


async def test_a_backend_that_a_worker_finds_down_is_told_by_it_and_in_the_catalog(
    tmp_path: Path, valkey_url: str
) -> None:
    acme = {"url": f"http://127.0.0.1:{free_port()}", "secret": "a-secret-of-the-tests"}
    settings = settings_for(tmp_path / "another", valkey_url, backends={"acme": acme})
    async with running(settings, worker_for(["submit"])) as worker:
        with pytest.raises(PartDown):
            await worker.parts.backends.named("acme").check()
        found = await health_of(settings)
        assert found["status"] == "ok"
        assert "was not reached" in found["down"]["backend 'acme'"]

        async def is_told() -> bool:
            return set(await parts_down(worker.parts.catalog)) == {"backend 'acme'"}

        await until(is_told, what="a heartbeat that tells of it")


async def test_a_process_that_starts_lives_and_is_not_ready(tmp_path: Path) -> None:
    clock = ManualClock()
    ready, stopping = asyncio.Event(), asyncio.Event()
    health = Health(
        role="worker",
        breakers=Breakers(clock, CountedIds()),
        loop_watch=LoopWatch(),
        ready=ready,
        stopping=stopping,
    )
    settings = Settings(data_dir=tmp_path)
    server = HealthServer(health, folder=tmp_path, role="worker", host="127.0.0.1", port=0)
    async with serving_health(server):

        async def answers() -> bool:
            return (await health_of(settings))["status"] == "ok"

        await until(answers)
        found = await health_of(settings, ready=True)
        assert (found["status"], found["words"]) == ("starting", "It starts.")
        stopping.set()
        assert (await health_of(settings, ready=True))["words"].startswith("It ends")
    assert (await health_of(settings))["status"] == "absent"


async def test_a_status_page_of_its_own_answers_too(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    async with open_memory(settings, Surroundings.real()) as catalog:
        page = StatusPage(catalog, host="127.0.0.1", port=0, folder=tmp_path)
        task = asyncio.create_task(page.run())

        async def answers() -> bool:
            return (await health_of(settings, ready=True))["status"] == "ok"

        await until(answers)
        await page.close()
        await task
    assert (await health_of(settings))["status"] == "absent"


def test_the_word_of_a_process_that_was_killed_is_removed(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    words = {"url": "http://127.0.0.1:9", "pid": gone.pid, "role": "worker"}
    for name, host in (("health-1.json", socket.gethostname()), ("health-2.json", "elsewhere")):
        (tmp_path / name).write_text(json.dumps(words | {"host": host}))
    assert asyncio.run(health_of(Settings(data_dir=tmp_path)))["status"] == "absent"
    assert [one.name for one in tmp_path.iterdir()] == ["health-2.json"]

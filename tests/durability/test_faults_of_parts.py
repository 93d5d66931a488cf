"""Each part fails while files flow, and is mended: everything at rest once, no attempt used.

Every cell of the table in docs/operations.md, *When a part fails*, names its test by ``@cell``.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import psutil
import pytest
import pytest_asyncio

from drivefeed.indexer.vectors import child_link
from durability.cells import cell
from durability.flow import Flow, running_flow
from support.faulty_backend import Way as BackendWay
from support.faulty_s3 import Way
from support.seaweed import seaweed  # noqa: F401 - a fixture
from support.valkey import ValkeyServer, free_port
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.seaweed import SeaweedServer

# The cells take minutes of computing time together; what is most likely to happen is tested in
# `make test` part by part: tests/integration/queue, integration/stores, acceptance/test_bad_times.
pytestmark = [pytest.mark.soak, pytest.mark.asyncio(loop_scope="module")]
FILES = 3


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def running(
    tmp_path_factory: pytest.TempPathFactory,
    seaweed: SeaweedServer,  # noqa: F811
) -> AsyncIterator[Flow]:
    valkey = ValkeyServer(tmp_path_factory.mktemp("valkey"), free_port())
    valkey.start()
    try:
        async with running_flow(tmp_path_factory.mktemp("data"), valkey, seaweed) as flow:
            flow.add(1)
            await flow.at_rest()
            yield flow
    finally:
        valkey.kill()


@pytest_asyncio.fixture(loop_scope="module")
async def flow(running: Flow) -> AsyncIterator[Flow]:
    """The daemon at rest; whatever happens to it, everything is there once afterwards."""
    before = running.failed_attempts()
    yield running
    await running.at_rest()
    await running.all_once()
    assert running.failed_attempts() == before
    assert not (await running.command("notices"))["open"]
    await running.until_calm("queue", "catalog", "store", "backend", "index", "source")
    assert (await running.command("health", "--strict"))["status"] == "ok"


async def in_the_middle(flow: Flow, count: int = FILES) -> None:
    """Add files, and return once one of them is done."""
    before = flow.settled()
    flow.add(count)
    await until(lambda: flow.settled() > before, seconds=60, what="a first file")


# Redis


@cell("Redis", "killed")
async def test_redis_is_killed(flow: Flow) -> None:
    await in_the_middle(flow)
    flow.valkey.kill()
    try:
        flow.add(1)
        await flow.until_shown("queue")
        # A restart would not bring it back.
        assert (await flow.command("health"))["status"] == "ok"
        assert "queue" in (await flow.command("health", "--strict", ok=(1,)))["down"]
    finally:
        flow.valkey.start()


@cell("Redis", "emptied")
async def test_redis_is_emptied(flow: Flow) -> None:
    await in_the_middle(flow)
    flow.valkey.flush()


@cell("Redis", "out of memory")
async def test_redis_is_out_of_memory(flow: Flow) -> None:
    with flow.valkey.client() as client:
        client.config_set("maxmemory", "1mb")
        try:
            flow.add(FILES)
            await flow.until_shown("queue")
        finally:
            client.config_set("maxmemory", "0")


@cell("Redis", "evicts keys")
async def test_redis_evicts_keys(flow: Flow) -> None:
    with flow.valkey.client() as client:
        client.config_set("maxmemory-policy", "allkeys-random")
        try:
            flow.add(FILES)
            used = int(client.info("memory")["used_memory"])
            client.config_set("maxmemory", str(used - 200_000))
            await flow.until_shown("queue")
        finally:
            client.config_set("maxmemory", "0")
            client.config_set("maxmemory-policy", "noeviction")


@cell("Redis", "slow")
async def test_redis_is_slow(flow: Flow) -> None:
    async def slow_down() -> None:
        with flow.valkey.client() as client:
            for _ in range(6):
                await asyncio.to_thread(client.client_pause, 400)
                await asyncio.sleep(0.5)

    slowing = asyncio.create_task(slow_down())
    flow.add(FILES)
    await slowing


async def paused(flow: Flow, seconds: float) -> None:
    await in_the_middle(flow)
    flow.valkey.freeze()
    try:
        flow.add(1)
        await asyncio.gather(flow.until_shown("queue"), asyncio.sleep(seconds))
    finally:
        flow.valkey.thaw()


@cell("Redis", "paused")
async def test_redis_is_paused(flow: Flow) -> None:
    await paused(flow, 0)


@pytest.mark.soak
async def test_redis_is_paused_a_minute(flow: Flow) -> None:
    await paused(flow, 60)


# The catalog


@cell("Catalog (SQLite)", "locked by another program")
async def test_the_catalog_is_locked_by_another_program(flow: Flow) -> None:
    await in_the_middle(flow)
    file = flow.folder / "catalog.sqlite"
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        # The writer before it may be ours.
        await asyncio.to_thread(other.execute, "BEGIN IMMEDIATE")
        flow.add(1)
        await flow.until_shown("catalog")
        other.execute("ROLLBACK")


@cell("Catalog (SQLite)", "disk full")
async def test_the_disk_of_the_catalog_is_full(flow: Flow) -> None:
    await in_the_middle(flow)
    await flow.set_pragmas(max_page_count="1")  # SQLite takes what there is for the most then
    flow.add(20)
    try:
        await flow.until_shown("catalog")
    finally:
        await flow.set_pragmas(max_page_count="1000000")


# The object store


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(Way.DOWN, marks=cell("Object store (S3)", "down")),
        pytest.param(Way.FORBIDS, marks=cell("Object store (S3)", "403")),
        pytest.param(Way.SLOW_DOWN, marks=cell("Object store (S3)", "SlowDown (503)")),
        pytest.param(Way.BREAKS, marks=cell("Object store (S3)", "breaks in the middle")),
    ],
)
async def test_the_store_refuses(flow: Flow, way: Way) -> None:
    await in_the_middle(flow)
    flow.s3.turn(way)
    flow.add(1)
    try:
        await flow.until_shown("store", "waiting_for_store")
    finally:
        flow.s3.turn(Way.WELL)


@cell("Object store (S3)", "slow")
async def test_the_store_is_slow(flow: Flow) -> None:
    flow.s3.turn(Way.SLOW)
    await in_the_middle(flow)
    flow.s3.turn(Way.WELL)


@cell("Object store (S3)", "hangs")
@pytest.mark.soak
async def test_the_store_hangs(flow: Flow) -> None:
    await in_the_middle(flow)
    flow.s3.turn(Way.HANGS)
    flow.add(1)
    await flow.until_shown("store", "waiting_for_store", seconds=200)
    flow.s3.turn(Way.WELL)


# The index


def index_process(flow: Flow) -> psutil.Process:
    (found,) = [
        child
        for child in psutil.Process().children()
        if any(str(flow.folder) in word for word in child.cmdline())
    ]
    return found


@cell("Index (embedded)", "killed")
async def test_the_index_process_is_killed(flow: Flow) -> None:
    await in_the_middle(flow)
    index_process(flow).kill()
    flow.add(1)


@cell("Index (embedded)", "hangs")
async def test_the_index_process_hangs(flow: Flow, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_link, "SILENT_SECONDS", 2.0)
    await in_the_middle(flow)
    hung = index_process(flow)
    os.kill(hung.pid, signal.SIGSTOP)
    flow.add(1)
    await flow.until_shown("index")
    await flow.at_rest()
    assert not hung.is_running()


# The ingestion backend


@cell("Ingestion backend", "down")
async def test_the_backend_is_down(flow: Flow) -> None:
    flow.backend.way = BackendWay.DOWN
    flow.add(FILES)
    try:
        await flow.until_shown("backend", "waiting_for_backend")
    finally:
        flow.backend.way = BackendWay.WELL


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(BackendWay.SLOW, marks=cell("Ingestion backend", "slow")),
        pytest.param(BackendWay.FORGETS, marks=cell("Ingestion backend", "unknown job")),
        pytest.param(
            BackendWay.OUT_OF_ORDER, marks=cell("Ingestion backend", "answers out of order")
        ),
    ],
)
async def test_the_backend_answers_oddly(flow: Flow, way: BackendWay) -> None:
    flow.backend.way = way
    flow.add(FILES)
    await flow.at_rest()
    flow.backend.way = BackendWay.WELL


# Where an attempt is used, because the file may be the cause


@cell("Object store (S3)", "wrong checksum")
async def test_bytes_do_not_arrive_as_they_were_sent(running: Flow) -> None:
    before = running.failed_attempts()
    running.s3.turn(Way.DAMAGES)
    running.add(1)
    try:
        await until(lambda: running.failed_attempts() > before, seconds=30)
    finally:
        running.s3.turn(Way.WELL)
    await running.at_rest()
    await running.all_once()

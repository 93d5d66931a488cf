"""One daemon in this process over real parts, through which files flow while parts fail.

graphsim and the proxy before S3 run on the same event loop; Valkey, the S3 server and the index are
processes. The tests of faults share one, since starting it takes longer than most of them.
"""

from __future__ import annotations

import asyncio
import gc
import json
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import structlog
from sqlalchemy import event

from drivefeed.bootstrap import Surroundings, open_parts
from drivefeed.daemon import Daemon
from drivefeed.setting_sections import S3Settings
from drivefeed.settings_folders import ConnectionSettings
from drivefeed.stages.backends import Backends
from drivefeed.stores import S3Store
from drivefeed.telemetry import ATTEMPTS_FAILED, QUEUE_EVENTS, configure_logs
from graphsim.serving import serve
from support.commands import run_command
from support.evidence import rows_in
from support.faulty_backend import FaultyBackend
from support.faulty_s3 import FaultyS3, faulty_s3
from support.offline import settings_for
from support.seaweed import BUCKET, new_prefix
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.bootstrap import Parts
    from graphsim.serving import GraphSim
    from support.seaweed import SeaweedServer
    from support.valkey import ValkeyServer

BUSY_MS = 300
"""How long a writer waits for a lock of another program, in place of 20 seconds."""


@dataclass
class Flow:
    """A running daemon, the parts it runs over, and what came of the files.

    Attributes:
        files: the names of all files so far.
    """

    folder: Path
    sim: GraphSim
    parts: Parts
    daemon: Daemon
    valkey: ValkeyServer
    s3: FaultyS3
    backend: FaultyBackend
    files: list[str] = field(default_factory=list)
    pragmas: dict[str, str] = field(default_factory=dict)

    # What happens at the source

    def add(self, count: int) -> list[str]:
        """Put files on the drive."""
        first = len(self.files)
        names = [f"file {first + number}.txt" for number in range(count)]
        for number, name in enumerate(names, first):
            words = f"The mill number {number} was built in the year {1500 + number}."
            self.sim.memory.create_file(name, words.encode())
        self.files += names
        return names

    # What people see

    async def command(self, *words: str, ok: tuple[int, ...] = (0,)) -> Any:
        """Run a command with ``--json`` as a person would; return what it printed."""
        done = await asyncio.to_thread(
            run_command, "--data", str(self.folder), *words, "--json", cwd=self.folder, ok=ok
        )
        return json.loads(done.stdout)

    async def shown(self) -> set[str]:
        """Return what ``status`` says is waited for: parts that are down, and reasons of holds."""
        (one,) = await self.command("status")
        held = {each["reason"] for each in one["reasons"] if each["standing"] == "held"}
        return {*one["parts_down"], *held, *filter(None, [one["hold"]])}

    async def until_shown(self, *words: str, seconds: float = 30.0) -> None:
        """Wait until ``status`` shows all of these."""

        async def shown() -> bool:
            return set(words) <= await self.shown()

        await until(shown, seconds=seconds, what=f"{words} in status; {self.unrest()}")

    async def until_calm(self, *words: str, seconds: float = 40.0) -> None:
        """Wait until ``status`` shows none of these any more."""

        async def calm() -> bool:
            return not set(words) & await self.shown()

        await until(calm, seconds=seconds, what=f"the end of {words} in status")

    # What is true

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        return rows_in(self.folder, sql, *values)

    def count(self, sql: str) -> int:
        return int(next(iter(self.rows(sql)[0].values())))

    def settled(self) -> int:
        return self.count("SELECT count(*) FROM imports WHERE state = 'settled'")

    def unrest(self) -> list[dict[str, Any]]:
        """Return what is still to do, for the sentence of a test that waits in vain."""
        return self.rows(
            "SELECT i.state, i.hold, i.attention, i.detail, r.stage, r.number, r.sent_at, r.owner,"
            " r.starts FROM imports i JOIN reminders r ON r.subject_id = i.id"
            " WHERE i.state <> 'settled' OR r.due_at IS NOT NULL"
        )

    async def at_rest(self, *, seconds: float = 60.0) -> None:
        """Wait until every file is searchable and nothing is due for any."""

        def rests() -> bool:
            live = "SELECT count(*) FROM documents WHERE live_import_id IS NOT NULL"
            return self.count(live) == len(self.files) and not self.unrest()

        try:
            await until(rests, seconds=seconds)
        except AssertionError as error:
            raise AssertionError(f"{len(self.files)} files at rest; {self.unrest()}") from error

    async def all_once(self) -> None:
        """Check from outside that every file is there, charged and indexed exactly once."""
        count = len(self.files)
        assert self.count("SELECT count(*) FROM imports") == count
        assert self.count("SELECT count(*) FROM ledger") == count
        assert self.count("SELECT count(*) FROM index_jobs") == count
        assert self.count("SELECT sum(chunks) FROM imports") == await self.parts.index.count()
        rounds = [each async for each in self.parts.index.rounds()]
        assert len(rounds) == count
        assert all(live for _, _, live, _ in rounds)
        assert len([each async for each in self.parts.store.list("")]) == count
        for table in ("imports", "drives", "connections"):
            assert self.count(f"SELECT count(*) FROM {table} WHERE attention IS NOT NULL") == 0

    def failed_attempts(self) -> float:
        """Return how many attempts have failed in this process, as stages and queues count them."""
        found = 0.0
        for counter, kind in ((ATTEMPTS_FAILED, None), (QUEUE_EVENTS, "failed")):
            (family,) = counter.collect()
            found += sum(
                one.value
                for one in family.samples
                if one.name.endswith("_total") and one.labels.get("event") == kind
            )
        return found

    async def set_pragmas(self, **pragmas: str) -> None:
        """Open all connections of the catalog anew, with these PRAGMAs."""
        self.pragmas = pragmas
        await self.parts.catalog._engine.dispose()


@asynccontextmanager
async def running_flow(
    folder: Path, valkey: ValkeyServer, seaweed: SeaweedServer
) -> AsyncIterator[Flow]:
    """Run graphsim, the proxy and a daemon on this event loop while the block lasts."""
    port = urlsplit(seaweed.endpoint_url).port
    assert port is not None
    async with AsyncExitStack() as stack:
        # Commands in threads of this process print; the daemon must not print between.
        log = stack.enter_context((folder / "up.log").open("w", encoding="utf-8"))
        configure_logs(json=True, stream=log)
        stack.callback(structlog.reset_defaults)
        sim = await stack.enter_async_context(serve())
        s3 = await stack.enter_async_context(faulty_s3(port))
        settings = settings_for(
            sim,
            folder,
            redis_url=valkey.url,
            s3=S3Settings(bucket=BUCKET, **_as_settings(seaweed, s3)),
            poll_seconds=0.2,
            poll_slowest_seconds=0.2,
            shutdown_seconds=2.0,
            connections=[ConnectionSettings(account="sim", drive_id=sim.drive.id)],
        )
        async with open_parts(settings, Surroundings.real()) as parts:
            assert isinstance(parts.store, S3Store)
            await parts.store.ensure_bucket()
            backend = FaultyBackend(parts.jobs, parts.index)
            flow = Flow(folder, sim, parts, Daemon(parts), valkey, s3, backend)
            patched = stack.enter_context(pytest.MonkeyPatch.context())
            patched.setattr(parts, "backends", Backends(backend))
            event.listen(parts.catalog._database.engine.sync_engine, "connect", _with_pragmas(flow))
            await flow.set_pragmas()
            running = asyncio.create_task(flow.daemon.run(), name="daemon")
            try:
                await until(flow.daemon.ready.is_set, seconds=60)
                yield flow
            finally:
                flow.daemon.stop()
                await running
                gc.unfreeze()


def _as_settings(seaweed: SeaweedServer, s3: FaultyS3) -> dict[str, Any]:
    return {**seaweed.settings, "endpoint_url": s3.url, "prefix": new_prefix()}


def _with_pragmas(flow: Flow) -> Any:
    def prepare(connection: Any, _entry: Any) -> None:
        cursor = connection.cursor()
        for name, value in {"busy_timeout": str(BUSY_MS), **flow.pragmas}.items():
            cursor.execute(f"PRAGMA {name}={value}")
        cursor.close()

    return prepare

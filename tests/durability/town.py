"""What lives need around them: a simulated Microsoft, a queue server, a service that embeds."""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from durability.lives import Host, Run, running_host
from durability.memories import PostgresMemory, SqliteMemory
from support.embeddings import KEY, EmbeddingService, embedding_service
from support.receiver import Receiver, running_receiver
from support.threaded_sim import threaded_sim
from support.valkey import ValkeyServer, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from durability.memories import Memory
    from graphsim.serving import GraphSim
    from support.postgres import PostgresServer

QUICK: dict[str, Any] = {
    "drivefeed.services.schedule._UPLOADS_OLDER_THAN_MS": 3_000,
    "drivefeed.services.relay.REMIND_MS": 400,
    "drivefeed.indexer.indexing._TELL_SECONDS": 0.0,
    "drivefeed.catalog.reminders._SUSPECT_WAITS_MS": {"2": 20, "3": 40, "4": 80},
    "drivefeed.backends.embedded._POLL_AGAIN_MS": 300,
    "drivefeed.stages.transfer._EDITED_AGAIN_MS": 100,
    "drivefeed.stages.runner.RENEW_SECONDS": 0.4,
    "drivefeed.stages.runner.CATALOG_AGAIN_MS": 100,
    "drivefeed.stages.withdraw._CANCEL_AGAIN_MS": 100,
    "drivefeed.stages.discover._ATTENTION_AGAIN_MS": 100,
    "drivefeed.services.notices._FIRST_WAIT_MS": 100,
    "drivefeed.services.notices._BUSY_MS": 300,
    "drivefeed.services.notices._REST": 1,
}
"""Waits of minutes, made short; what is decided after them stays as it is."""


@dataclass
class Town:
    """What is there for all runs; each has a drive, a queue prefix and a folder of its own."""

    host: Host
    sim: GraphSim
    valkey: ValkeyServer
    service: EmbeddingService
    receiver: Receiver
    folders: Sequence[Path]
    home: Path
    postgres: PostgresServer | None = None

    def run(self, number: int, *, settings: str = "", connection: str = "") -> Run:
        """Return a new run over the drive of that number."""
        home = self.home / f"run {number}"
        (home / "data").mkdir(parents=True, exist_ok=True)
        data = home / "data"
        memory: Memory = (
            PostgresMemory(self.postgres, data) if self.postgres else SqliteMemory(data)
        )
        run = Run(self.host, home, memory, tuned=dict(QUICK))
        ends = self.sim.endpoints
        account = {
            "name": "test",
            "org": "test",
            "tenant_id": ends.tenant_id,
            "client_id": ends.client_id,
            "client_secret": ends.client_secret,
            "authority": ends.login_url,
            "graph_url": ends.graph_url,
            "ca_file": str(ends.ca_file),
        }
        embedding = {
            "provider": "openai",
            "model": "first",
            "base_url": f"{self.service.url}/v1",
            "api_key": KEY,
            "dimension": self.service.dimension,
        }
        embedding | {"model": "second"}
        lines = [
            "poll_seconds = 0.6",
            "poll_slowest_seconds = 0.6",
            "log_json = true",
            "ru_per_minute = 1000000",
            "shutdown_seconds = 2.0",
            f"redis_url = {json.dumps(self.valkey.url)}",
            f'queue_prefix = "run{number}"',
            memory.settings,
            settings,
            "[extraction]",
            "processes = 1",
            "[embedding]",
            *(f"{key} = {json.dumps(value)}" for key, value in embedding.items()),
            "[embeddings.second]",
            *(
                f"{key} = {json.dumps(value)}"
                for key, value in (embedding | {"model": "second"}).items()
            ),
            "[watch]",
            "look_seconds = 1.0",
            "[[notices]]",
            'name = "hook"',
            'kind = "webhook"',
            f'url = "{self.receiver.url}/{number}"',
            "[[notices]]",
            'name = "nobody"',
            'kind = "webhook"',
            'url = "http://127.0.0.1:9/"',
            "[[accounts]]",
            *(f"{key} = {json.dumps(value)}" for key, value in account.items()),
            "[[connections]]",
            'account = "test"',
            f"drive_id = {json.dumps(self.sim.drives[number].id)}",
            'name = "OneDrive"',
            "grace_seconds = 0.5",
            "brake_count = 3",
            "brake_floor = 1000",
            connection,
        ]
        (run.data / "drivefeed.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
        return run


@contextmanager
def running_town(
    home: Path, *, drives: int, postgres: PostgresServer | None = None
) -> Iterator[Town]:
    """Run everything while the block lasts.

    Args:
        postgres: where catalogs are; files of SQLite without it.
    """
    folders = [home / f"drive {number}" for number in range(drives)]
    for folder in (*folders, home / "valkey"):
        folder.mkdir(parents=True)
    with ExitStack() as stack:
        host = stack.enter_context(running_host(home / "host.log"))
        valkey = ValkeyServer(home / "valkey", free_port())
        stack.callback(valkey.kill)
        valkey.start()
        sim = stack.enter_context(threaded_sim(*folders, state=home / "sim"))
        service = stack.enter_context(embedding_service(dimension=16))
        receiver = stack.enter_context(running_receiver())
        yield Town(host, sim, valkey, service, receiver, folders, home, postgres)

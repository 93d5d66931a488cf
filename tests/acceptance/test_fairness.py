"""One organization has 200,000 files waiting; another's single file is searchable within seconds.

The whole pipeline works: a daemon, a Valkey, a graphsim with a drive for each organization. The
first files of the backlog are real and are imported meanwhile; the others are rows, copied from
those within the catalog, which is as far as the daemon comes in the time of the test.
"""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import ExitStack, closing, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from drivefeed.ports import Stage
from support.daemon import Daemon
from support.embeddings import KEY, embedding_service
from support.processes import until
from support.threaded_sim import threaded_sim
from support.valkey import ValkeyServer, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REAL, ROWS = 2_000, 200_000
ROUNDS = 6
DELAY_SECONDS = 10.0
"""As the promise has it, with the two seconds between two looks at a drive within."""
POLL_SECONDS = 2.0
MOST_BYTES = 64 << 20
MOST_JOBS = 1_500
"""Waiting, delayed and under way in all queues; each has a window of at most 160, twice."""

_COPIES = {
    "items": {"item_id": "'copy-' || n", "name": "'copy ' || n || '.txt'"},
    "documents": {
        "id": "'d' || n",
        "item_id": "'copy-' || n",
        "name": "'copy ' || n || '.txt'",
        "wanted_import_id": "'i' || n",
        "live_import_id": "NULL",
        "live_round": "NULL",
    },
    "imports": {"id": "'i' || n", "document_id": "'d' || n", "version_key": "'copy ' || n"},
    "coverage": {"item_id": "'copy-' || n", "document_id": "'d' || n"},
    "reminders": {
        "subject_id": "'i' || n",
        "payload": "json_set(payload, '$.import_id', 'i' || n, '$.document_id', 'd' || n)",
        "due_at": "due_at + 1000 + n / 1000",
        "sent_at": "NULL",
        "remind_at": "NULL",
        "owner": "NULL",
        "busy_until": "NULL",
    },
}
"""What differs between a row and its copy number ``n``."""


class Town:
    """A daemon between two organizations."""

    def __init__(self, home: Path, many: Path, few: Path, stack: ExitStack) -> None:
        self.many, self.few = many, few
        (home / "valkey").mkdir()
        self.valkey = ValkeyServer(home / "valkey", free_port())
        stack.callback(self.valkey.kill)
        self.valkey.start()
        self.sim = stack.enter_context(threaded_sim(many, few, state=home / "sim"))
        self.service = stack.enter_context(embedding_service(dimension=16))
        nobody = SimpleNamespace(endpoints={}, process=None)
        (home / "daemon").mkdir()
        self.daemon = Daemon(home / "daemon", cast("Any", nobody))
        stack.callback(self.daemon.end)
        (self.daemon.data / "drivefeed.toml").write_text(self._settings(), encoding="utf-8")

    def _settings(self) -> str:
        ends = self.sim.endpoints
        lines = [
            f"poll_seconds = {POLL_SECONDS}",
            "log_json = true",
            "ru_per_minute = 1000000",
            f"redis_url = {json.dumps(self.valkey.url)}",
            'queue_prefix = "fair"',
            "[embedding]",
            'provider = "openai"',
            'model = "first"',
            f'base_url = "{self.service.url}/v1"',
            f'api_key = "{KEY}"',
            f"dimension = {self.service.dimension}",
        ]
        for number, org in enumerate(("many", "few")):
            account = {
                "name": f"of {org}",
                "org": org,
                "tenant_id": ends.tenant_id,
                "client_id": ends.client_id,
                "client_secret": ends.client_secret,
                "authority": ends.login_url,
                "graph_url": ends.graph_url,
                "ca_file": str(ends.ca_file),
            }
            lines += [
                "[[accounts]]",
                *(f"{key} = {json.dumps(value)}" for key, value in account.items()),
            ]
            lines += [
                "[[connections]]",
                f'account = "of {org}"',
                f"drive_id = {json.dumps(self.sim.drives[number].id)}",
                f'name = "{org}"',
            ]
        return "\n".join(lines) + "\n"

    def settled(self, org: str) -> int:
        (row,) = self.daemon.rows(
            "SELECT count(*) AS n FROM imports JOIN orgs ON orgs.id = imports.org_id"
            " WHERE orgs.name = ? AND state = 'settled'",
            org,
        )
        return int(row["n"])

    def seconds_until_found(self, name: str) -> float:
        """Put a file into the small drive, and wait until search finds what it says."""
        words = f"the zephyr of {name.replace(' ', '')}"
        (self.few / f"{name}.txt").write_text(f"This is about {words}.", encoding="utf-8")
        begun = time.monotonic()
        until(
            lambda: self._is_live(f"{name}.txt"),
            seconds=120,
            what=self.daemon.last_words,
            pause=0.05,
        )
        took = time.monotonic() - begun
        assert any(hit["path"].endswith(f"{name}.txt") for hit in self._found(words))
        return took

    def _found(self, words: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.daemon.get("/v1/search", q=words, limit=10, org="few")
        return found

    def _is_live(self, name: str) -> bool:
        return bool(
            self.daemon.rows(
                "SELECT 1 FROM documents JOIN imports ON imports.id = live_import_id"
                " WHERE documents.name = ? AND state = 'settled'",
                name,
            )
        )

    def add_rows(self) -> float:
        """Copy a waiting file of the large drive, with all its rows, so many times."""
        begun = time.monotonic()
        with closing(sqlite3.connect(self.daemon.data / "catalog.sqlite")) as catalog, catalog:
            catalog.execute("PRAGMA synchronous = OFF")
            (waiting,) = catalog.execute(
                "SELECT imports.id, document_id, documents.item_id, documents.drive_id"
                " FROM imports JOIN documents ON documents.id = document_id"
                " JOIN orgs ON orgs.id = imports.org_id"
                " WHERE orgs.name = 'many' AND imports.state = 'discovered'"
                " ORDER BY imports.created_at DESC LIMIT 1"
            ).fetchall()
            import_id, document_id, item_id, drive_id = waiting
            of = {
                "items": ("item_id = ? AND drive_id = ?", (item_id, drive_id)),
                "documents": ("id = ?", (document_id,)),
                "imports": ("id = ?", (import_id,)),
                "coverage": ("document_id = ?", (document_id,)),
                "reminders": ("subject_id = ?", (import_id,)),
            }
            for table, changes in _COPIES.items():
                where, values = of[table]
                columns = [row[1] for row in catalog.execute(f"PRAGMA table_info({table})")]
                chosen = ", ".join(changes.get(one, one) for one in columns)
                catalog.execute(
                    f"WITH RECURSIVE seq (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM seq"
                    f" WHERE n < {ROWS}) INSERT INTO {table} ({', '.join(columns)})"
                    f" SELECT {chosen} FROM seq, {table} WHERE {where}",
                    values,
                )
        return time.monotonic() - begun

    def jobs(self) -> int:
        """Count what waits in Redis, is delayed, or is under way."""
        with self.valkey.client() as client:
            count = 0
            for stage in Stage:
                base = f"fair:{stage.value}"
                count += int(client.llen(f"{base}:wait")) + int(client.llen(f"{base}:active"))
                count += int(client.zcard(f"{base}:delayed"))
                count += int(client.zcard(f"{base}:prioritized"))
        return count

    def memory(self) -> int:
        """Return the bytes that Redis uses."""
        with self.valkey.client() as client:
            return int(client.info("memory")["used_memory"])


@contextmanager
def running_town(home: Path) -> Iterator[Town]:
    many, few = home / "many", home / "few"
    for folder in (many, few):
        folder.mkdir()
    for number in range(REAL):
        (many / f"note {number:05}.txt").write_text(f"Note {number}: {number * 13} sacks of grain.")
    (few / "first.txt").write_text("The first file of a small organization.")
    with ExitStack() as stack:
        yield Town(home, many, few, stack)


@pytest.mark.soak
@pytest.mark.timeout(1_500)
def test_a_single_file_passes_a_backlog_through_the_whole_pipeline(tmp_path: Path) -> None:
    with running_town(tmp_path) as town:
        town.daemon.start()
        listed = (
            "SELECT count(*) AS n FROM imports JOIN orgs ON orgs.id = org_id WHERE name = 'many'"
        )
        until(
            lambda: town.daemon.rows(listed)[0]["n"] == REAL and town.settled("few") == 1,
            seconds=300,
            what=town.daemon.last_words,
            pause=0.2,
        )
        town.daemon.stop()
        filled = town.add_rows()
        (waiting,) = town.daemon.rows("SELECT count(*) AS n FROM reminders WHERE due_at NOT NULL")
        assert waiting["n"] > ROWS
        before = town.memory()
        town.daemon.start()
        begun = town.settled("many")
        until(lambda: town.settled("many") > begun, seconds=120, what=town.daemon.last_words)
        delays, most_bytes, most_jobs, worked = [], 0, 0, []
        for number in range(ROUNDS):
            last = town.settled("many")
            delays.append(town.seconds_until_found(f"single {number}"))
            until(
                lambda last=last: town.settled("many") > last,  # type: ignore[misc] - bound here
                seconds=60,
                what="the backlog to be worked on",
                pause=0.2,
            )
            worked.append(town.settled("many") - last)
            most_bytes = max(most_bytes, town.memory())
            most_jobs = max(most_jobs, town.jobs())
        (left,) = town.daemon.rows(
            "SELECT count(*) AS n FROM imports WHERE state = 'discovered' AND id LIKE 'i%'"
        )
        town.daemon.stop()
    print(  # noqa: T201 - the figures are the point
        f"\n{waiting['n']:,} files wait (rows made in {filled:.0f} s, {left['n']:,} left); another "
        f"org's file is searchable after {', '.join(f'{one:.1f}' for one in delays)} s, while "
        f"{sum(worked)} of the backlog were imported; Redis held {most_jobs} jobs and "
        f"{(most_bytes - before) / 2**20:.1f} MB more at most"
    )
    assert max(delays) < DELAY_SECONDS
    assert left["n"] > ROWS // 2, "the backlog lasted"
    assert most_jobs <= MOST_JOBS
    assert most_bytes - before < MOST_BYTES

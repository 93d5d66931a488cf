"""Three processes bring a full drive in, through every stage, within a budget that they share.

The documents go to the sample backend, which embeds nothing: so the budget is the limit here, and
not the machine.
"""

from __future__ import annotations

import json
from contextlib import ExitStack
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from support.postgres import running_postgres
from support.postgres_daemon import PostgresDaemon
from support.processes import until
from support.sample_backend import SECRET, sample, served
from support.threaded_sim import threaded_sim
from support.valkey import valkey_server, valkey_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from acceptance.conftest import Figure

__all__ = ["valkey_server", "valkey_url"]

SMALLEST, SCALE = 1250, 20
QUEUES = "discover,admit,transfer,submit,poll"
WORKERS = ((7, f"{QUEUES},publish,withdraw"), (7, QUEUES), (6, QUEUES))
"""Transfers at once, and queues: the embedded index is open in one process at a time."""
CHANGES = 10
MOST_BEFORE = 100


class Town:
    """A scheduler and three workers over a drive in memory and the sample backend."""

    def __init__(
        self, home: Path, *, url: str, redis_url: str, share: float, stack: ExitStack
    ) -> None:
        self.share = share
        self.home = home
        self.data = home / "data"
        self.data.mkdir()
        self.sim = stack.enter_context(threaded_sim(state=home / "sim"))
        self.sim.allowance.per_minute, self.sim.allowance.scale = SMALLEST, float(SCALE)
        self.backend = sample.Backend(secret=SECRET, store=self.data / "objects")
        self.backend_url = stack.enter_context(served(self.backend))
        self.url, self.redis_url = url, redis_url
        self.scheduler = self._process("scheduler", "scheduler")
        self.workers = [
            self._process(f"worker {number}", "worker", "--queues", queues, transfers=transfers)
            for number, (transfers, queues) in enumerate(WORKERS)
        ]
        for one in self.all:
            stack.callback(one.end)

    @property
    def all(self) -> list[PostgresDaemon]:
        return [self.scheduler, *self.workers]

    @property
    def ours(self) -> float:
        """Resource units a minute that are ours to spend."""
        return SMALLEST * SCALE * self.share

    def _process(self, name: str, *words: str, transfers: int = 1) -> PostgresDaemon:
        home = self.home / name
        home.mkdir()
        nobody = cast("Any", SimpleNamespace(endpoints={}, process=None))
        settings = home / "drivefeed.toml"
        settings.write_text(self._settings(transfers), encoding="utf-8")
        return PostgresDaemon(
            home, nobody, self.url, data=self.data, words=("--config", str(settings), *words)
        )

    def _settings(self, transfers: int) -> str:
        ends = self.sim.endpoints
        account = {
            "name": "test", "org": "test", "tenant_id": ends.tenant_id,
            "client_id": ends.client_id, "client_secret": ends.client_secret,
            "authority": ends.login_url, "graph_url": ends.graph_url, "ca_file": ends.ca_file,
        }  # fmt: skip
        return "\n".join(
            (
                f"database_url = {json.dumps(self.url)}",
                f"redis_url = {json.dumps(self.redis_url)}",
                *("shared_objects = true", "log_json = true"),
                *("poll_seconds = 1", "poll_slowest_seconds = 1"),
                f"ru_per_minute = {SMALLEST * SCALE}",
                f"ru_share = {self.share}",
                f"concurrency = {{ transfer = {transfers} }}",
                "[backends.sample]",
                f"url = {json.dumps(self.backend_url)}",
                f"secret = {json.dumps(SECRET)}",
                'content = "store_key"',
                "[[accounts]]",
                *(f"{key} = {json.dumps(value)}" for key, value in account.items()),
                *("[[connections]]", 'account = "test"', 'name = "Archive"'),
                *(f"drive_id = {json.dumps(self.sim.memory.id)}", 'backend = "sample"'),
            )
        )

    def shown(self, name: str | None = None) -> int:
        """Count what the backend shows, of all names or of one; no process may have ended."""
        for one in self.all:
            assert one.process is not None
            assert one.process.poll() is None, one.last_words()
        rows = self.backend.rows("SELECT name FROM jobs WHERE live = 1")
        return sum(name in (None, row["name"]) for row in rows)

    def last_words(self) -> str:
        return "\n".join(one.last_words()[-1500:] for one in self.all)

    def others_before_a_change(self, number: int) -> int:
        """Change a file; return how many others were shown before it is."""
        name, before = f"change {number}.txt", self.shown()
        self.sim.memory.create_file(name, f"Change {number} is new.".encode())
        until(lambda: self.shown(name), seconds=120, what=self.last_words, pause=0.05)
        return self.shown() - before - 1


@pytest.fixture
def town(tmp_path: Path, valkey_url: str, share: float) -> Iterator[Town]:
    with running_postgres(autovacuum=True) as server, ExitStack() as stack:
        url = server.new_database()
        yield Town(tmp_path, url=url, redis_url=valkey_url, share=share, stack=stack)


@pytest.mark.soak
@pytest.mark.parametrize(
    ("files", "share"),
    [
        pytest.param(1_500, 0.016, id="1500", marks=pytest.mark.timeout(900)),
        pytest.param(50_000, 0.016, id="50000", marks=pytest.mark.timeout(4 * 3600)),
    ],
)
def test_changes_pass_a_backfill_within_the_budget(town: Town, files: int, figure: Figure) -> None:
    drive = town.sim.memory
    for number in range(files):
        drive.create_file(f"old {number:05}.txt", f"Old file number {number}.".encode())
    for one in town.all:
        one.start(wait=False)
    until(lambda: town.shown() >= files // 10, seconds=3600, what=town.last_words)
    overtaken = []
    for number in range(CHANGES):
        wanted = files * (number + 2) // (CHANGES + 4)
        until(lambda least=wanted: town.shown() >= least, seconds=3600, what=town.last_words)
        overtaken.append(town.others_before_a_change(number))
    assert town.shown() < files, "the backfill still waits"
    until(
        lambda: town.shown() == files + CHANGES, seconds=3 * 3600, what=town.last_words, pause=0.3
    )
    log = list(town.sim.log)
    downloads = [one.time for one in log if one.op == "content"]
    began, ended = downloads[files // 10], downloads[-1]
    spent = sum(one.resource_units for one in log if began <= one.time < ended)
    ours = (ended - began) * town.ours / 60
    figure("share of our units used while work waits:", f"{100 * spent / ours:.1f} %")
    figure("files a second:", f"{(len(downloads) - files // 10) / (ended - began):.1f}")
    figure("files of the backfill before a change:", str(overtaken))
    assert not town.sim.log.during_penalty()
    assert [one.refused for one in town.sim.allowance.accounts.values()] == [0]
    assert 0.95 * ours <= spent
    assert max(overtaken) < MOST_BEFORE
    charges = town.scheduler.rows("SELECT count(*) AS n FROM ledger")
    assert charges == [{"n": files + CHANGES}]
    for one in town.all:
        one.stop()

"""One scheduler and two workers over Postgres, Valkey and S3; one worker is killed in the middle.

The vector index is the embedded one, so one worker has the queues that write to it.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from support.evidence import files_below, sha256
from support.postgres_daemon import PostgresDaemon
from support.processes import until
from support.seaweed import ACCESS_KEY, BUCKET, REGION, SECRET_KEY, new_prefix, seaweed
from support.sim import Sim
from support.valkey import valkey_server, valkey_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.postgres import PostgresServer
    from support.seaweed import SeaweedServer

__all__ = ["seaweed", "valkey_server", "valkey_url"]

FEW, MANY = 10, 80


class Town:
    """The processes of one installation; each has a folder of its own for its data."""

    def __init__(self, home: Path, sim: Sim, url: str, settings: str, prefix: str) -> None:
        self._home = home
        self._sim = sim
        self._url = url
        self._settings = settings
        self.prefix = prefix
        self.all: list[PostgresDaemon] = []

    def add(self, name: str, *words: str) -> PostgresDaemon:
        home = self._home / name
        home.mkdir()
        one = PostgresDaemon(
            home, self._sim, self._url, words=words, poll=0.5, settings=self._settings
        )
        self.all.append(one)
        return one


@pytest.fixture(params=[FEW, MANY])
def count(request: pytest.FixtureRequest) -> int:
    files: int = request.param
    return files


@pytest.fixture
def folder(tmp_path: Path, count: int) -> Path:
    folder = tmp_path / "OneDrive"
    for number in range(count):
        path = folder / f"Shelf {number % 4}/note {number:02}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Note {number}: the miller weighs {number * 13} sacks.\n")
    return folder


@pytest.fixture
def town(
    tmp_path: Path,
    folder: Path,
    postgres_server: PostgresServer,
    seaweed: SeaweedServer,
    valkey_url: str,
) -> Iterator[Town]:
    url = postgres_server.new_database()
    sim = Sim(folder, tmp_path / "graphsim")
    sim.start()
    bucket = _bucket(seaweed)
    bucket.create()
    s3 = {
        "bucket": BUCKET,
        "endpoint_url": seaweed.endpoint_url,
        "region": REGION,
        "access_key": ACCESS_KEY,
        "secret_key": SECRET_KEY,
        "prefix": new_prefix(),
    }
    section = ", ".join(f"{key} = {json.dumps(value)}" for key, value in s3.items())
    lines = [f"redis_url = {json.dumps(valkey_url)}", f"s3 = {{ {section} }}"]
    town = Town(tmp_path, sim, url, "\n".join(lines), s3["prefix"])
    try:
        yield town
    finally:
        for one in town.all:
            one.end()
        sim.stop()
        postgres_server.drop(url)


def _bucket(seaweed: SeaweedServer) -> Any:
    resource: Any = boto3.resource(
        "s3",
        endpoint_url=seaweed.endpoint_url,
        region_name=REGION,
        aws_access_key_id=ACCESS_KEY,
        aws_secret_access_key=SECRET_KEY,
    )
    return resource.Bucket(BUCKET)


@pytest.mark.soak
def test_a_worker_that_is_killed_leaves_its_work_to_the_others(
    town: Town, folder: Path, count: int, seaweed: SeaweedServer
) -> None:
    scheduler = town.add("scheduler", "scheduler")
    everything = town.add("indexes", "worker", "--queues", "transfer,index,publish,withdraw,poll")
    doomed = town.add("doomed", "worker", "--queues", "discover,admit,transfer,submit,poll")
    heir = town.add("heir", "worker", "--queues", "discover,admit,transfer,submit,poll")
    for one in (scheduler, everything, doomed):
        one.start(wait=False)
    assert doomed.process is not None
    pid = doomed.process.pid
    until(
        lambda: scheduler.rows(
            "SELECT 1 FROM reminders WHERE owner LIKE $1 AND stage IN ('transfer', 'submit')",
            f"%-{pid}-%",
        ),
        seconds=90,
        what=lambda: "\n".join(one.last_words() for one in town.all),
        pause=0.02,
    )
    doomed.kill()
    held = scheduler.rows("SELECT subject_id FROM reminders WHERE owner LIKE $1", f"%-{pid}-%")
    heir.start(wait=False)
    until(
        lambda: not scheduler.unrest(count),
        seconds=120,
        what=lambda: f"{scheduler.unrest(count)}; {held}; {heir.last_words()}",
        pause=0.3,
    )
    assert not scheduler.rows("SELECT 1 FROM reminders WHERE owner LIKE $1", f"%-{pid}-%")
    _compare(town, everything, folder, seaweed)
    roles = {row["role"] for row in scheduler.rows("SELECT role FROM heartbeats")}
    assert roles == {"scheduler", "worker"}
    for one in (scheduler, everything, heir):
        one.stop()


def _compare(town: Town, daemon: PostgresDaemon, folder: Path, seaweed: SeaweedServer) -> None:
    live = daemon.rows(
        """
        SELECT items.name, org_id || '/' || documents.id || '/' || live_import_id || '/'
                 || live_round AS key, live_import_id, live_round
        FROM documents JOIN items USING (drive_id, item_id) WHERE live_import_id IS NOT NULL
        """
    )
    on_disk = {path.name: path for path in files_below(folder).values()}
    assert {row["name"] for row in live} == on_disk.keys()
    prefix = f"{town.prefix}/"
    stored = {
        one.key.removeprefix(prefix): one for one in _bucket(seaweed).objects.filter(Prefix=prefix)
    }
    assert stored.keys() == {row["key"] for row in live}
    for row in live:
        assert stored[row["key"]].size == on_disk[row["name"]].stat().st_size
    rounds = {(row["live_import_id"], row["live_round"]): (True, 1) for row in live}
    assert daemon.points() == rounds
    ledger = daemon.ledger()
    assert Counter(one.sha256 for one in ledger) == Counter(
        sha256(path) for path in on_disk.values()
    )

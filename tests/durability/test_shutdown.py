"""The end of a daemon: in order, in time, whatever hangs, and with nothing left of it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sqlite3
import time
from contextlib import closing, suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import psutil
import pytest

from drivefeed.catalog.engine import migrate, sqlite_url
from drivefeed.cli.serve import END_WITHIN_SECONDS
from drivefeed.settings import Settings
from support.daemon import Daemon
from support.faulty_s3 import Way, faulty_s3
from support.processes import until
from support.seaweed import ACCESS_KEY, SECRET_KEY
from support.threaded_sim import threaded_sim
from support.valkey import own_valkey  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from graphsim.serving import GraphSim
    from support.valkey import ValkeyServer

FILES = 6
BUSY_MACHINE_SECONDS = 12.0
"""What a process may take longer on a busy machine than its own clock says."""


@pytest.fixture(scope="module")
def sim() -> Iterator[GraphSim]:
    with threaded_sim() as found:
        for number in range(FILES):
            found.memory.create_file(f"file {number}.txt", f"Number {number}.".encode())
        yield found


@pytest.fixture
def make(tmp_path: Path, sim: GraphSim) -> Iterator[Any]:
    """Make daemons that are ended after the test, whatever became of them."""
    made: list[Daemon] = []

    def make_one(**settings: str | float) -> Daemon:
        served: Any = SimpleNamespace(endpoints=msgspec.to_builtins(sim.endpoints), process=None)
        lines = [
            f"{key} = {value!r}".replace("'", '"')
            for key, value in {"shutdown_seconds": 1.0, **settings}.items()
        ]
        lines.append("extraction = { processes = 1 }")
        home = tmp_path / "home"
        home.mkdir()
        one = Daemon(home, served, settings="\n".join(lines), interpreter=True)
        made.append(one)
        return one

    yield make_one
    for one in made:
        one.end()


def child_of(daemon: Daemon, words: str) -> psutil.Process | None:
    """Return the child whose command line holds these words."""
    assert daemon.process is not None
    for one in psutil.Process(daemon.process.pid).children():
        with suppress(psutil.Error):
            if words in " ".join(one.cmdline()):
                return one
    return None


def hang_extraction(daemon: Daemon) -> psutil.Process:
    """Have the process hang that reads files, with a file in hand."""
    child = until(
        lambda: child_of(daemon, "indexer.extract"), seconds=60, what=daemon.last_words, pause=0.05
    )
    child.suspend()
    until(
        lambda: daemon.rows("SELECT 1 FROM reminders WHERE stage = 'index' AND owner NOT NULL"),
        seconds=60,
        what=daemon.last_words,
    )
    return child


def send(daemon: Daemon, number: signal.Signals) -> None:
    assert daemon.process is not None
    daemon.tree()
    daemon.process.send_signal(number)


def has_said(daemon: Daemon, event: str) -> bool:
    return any(one["event"] == event for one in daemon.log())


def ends(daemon: Daemon, *, within: float, code: int = 0) -> None:
    """Wait for its end; fail if it takes too long, or leaves a child behind."""
    process, daemon.process = daemon.process, None
    assert process is not None
    assert process.wait(within + BUSY_MACHINE_SECONDS) == code, daemon.last_words()
    daemon.assert_nothing_left()
    assert "Traceback" not in daemon.last_words()


def unused_attempts(daemon: Daemon) -> None:
    """No attempt was used, and what was under way is due again and counts as not started."""
    assert not daemon.rows("SELECT 1 FROM import_events WHERE event = 'attempt_failed'")
    rows = daemon.rows("SELECT owner, starts, sent_at FROM reminders WHERE stage = 'index'")
    assert rows
    assert {(row["owner"], row["starts"]) for row in rows} == {(None, 0)}


def _next(line: socket.socket) -> bytes:
    with suppress(TimeoutError):
        return line.recv(200)
    return b""


def test_the_grace_and_the_rest_are_shorter_than_thirty_seconds() -> None:
    assert Settings.model_fields["shutdown_seconds"].default + END_WITHIN_SECONDS < 30


def test_running_jobs_may_finish_when_the_terminal_goes(
    make: Any, hangup_taken: None, tmp_path: Path
) -> None:
    daemon = make(shutdown_seconds=60.0)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(0.1)
        daemon.start(wait=False, NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="20000000")
        child = hang_extraction(daemon)
        send(daemon, signal.SIGHUP)
        until(lambda: has_said(daemon, "stopping"), seconds=30, what=daemon.last_words)
        child.resume()
        ends(daemon, within=30)
        told = list(iter(lambda: _next(systemd), b""))
    said = [one.splitlines()[0] for one in told]
    assert [one for one in said if one != b"WATCHDOG=1"] == [b"READY=1", b"STOPPING=1"]
    assert b"WATCHDOG=1" in said
    assert has_said(daemon, "stopped")
    done = daemon.rows("SELECT state FROM index_jobs WHERE state = 'done'")
    assert done


def test_an_extraction_that_hangs_is_handed_back(
    make: Any,
    own_valkey: ValkeyServer,  # noqa: F811
) -> None:
    daemon = make(redis_url=own_valkey.url)
    daemon.start(wait=False)
    hang_extraction(daemon)
    send(daemon, signal.SIGTERM)
    ends(daemon, within=8)
    unused_attempts(daemon)
    with own_valkey.client() as client:
        jobs = [key for key in client.keys("drivefeed:index:index-*") if ":lock" not in key]
        assert jobs
        assert {client.hget(key, "atm") for key in jobs} <= {None, "0"}


def test_a_second_signal_ends_at_once(make: Any) -> None:
    daemon = make(shutdown_seconds=600.0)
    daemon.start(wait=False)
    hang_extraction(daemon)
    send(daemon, signal.SIGINT)
    until(lambda: has_said(daemon, "stopping"), seconds=30, what=daemon.last_words)
    send(daemon, signal.SIGTERM)
    ends(daemon, within=0, code=130)


@pytest.mark.parametrize("gap", [0.0, 0.02, 0.2])
def test_two_signals_in_quick_succession_leave_no_traceback(make: Any, gap: float) -> None:
    daemon = make()
    daemon.start()
    send(daemon, signal.SIGTERM)
    time.sleep(gap)
    process, daemon.process = daemon.process, None
    process.send_signal(signal.SIGTERM)
    # Two that come at once may be one; and the end in order may have been quicker.
    assert process.wait(30) in {0, 130, -signal.SIGTERM}, daemon.last_words()
    daemon.assert_nothing_left()
    said = (daemon.home / "up.log").read_text(errors="replace")
    assert "Traceback" not in said
    assert not [one for one in daemon.log() if one.get("level") in {"error", "critical"}]


@pytest.mark.parametrize("how", ["frozen", pytest.param("killed", marks=pytest.mark.soak)])
def test_redis_is_gone(
    make: Any,
    own_valkey: ValkeyServer,  # noqa: F811
    how: str,
) -> None:
    daemon = make(redis_url=own_valkey.url)
    daemon.start()
    until(lambda: daemon.rows("SELECT 1 FROM ledger"), seconds=60, what=daemon.last_words)
    (own_valkey.freeze if how == "frozen" else own_valkey.kill)()
    send(daemon, signal.SIGTERM)
    ends(daemon, within=8)


async def test_the_store_hangs(make: Any) -> None:
    async with faulty_s3(0) as s3:
        s3.way = Way.HANGS
        names = {"bucket": "b", "region": "us-east-1", "endpoint_url": s3.url}
        secrets = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY}
        wanted = ", ".join(f'{key} = "{value}"' for key, value in (names | secrets).items())
        daemon = make()
        toml = daemon.data / "drivefeed.toml"
        toml.write_text(f"s3 = {{ {wanted} }}\n" + toml.read_text())

        def run() -> None:
            daemon.start(wait=False)
            until(lambda: s3.requests, seconds=60, what=daemon.last_words)
            send(daemon, signal.SIGTERM)
            ends(daemon, within=8)

        await asyncio.to_thread(run)
    assert not daemon.rows("SELECT 1 FROM import_events WHERE event = 'attempt_failed'")


def test_while_it_migrates(make: Any) -> None:
    daemon = make()
    file = daemon.data / "catalog.sqlite"
    migrate(sqlite_url(file), to="0001")
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        daemon.start(wait=False)
        process = psutil.Process(daemon.process.pid)
        until(
            lambda: any(one.path == str(file) for one in process.open_files()),
            seconds=60,
            what="the catalog to be opened",
        )
        send(daemon, signal.SIGTERM)
        ends(daemon, within=8)
        assert not (daemon.data / "queue").exists()
    assert daemon.rows("SELECT version_num FROM alembic_version") == [{"version_num": "0001"}]


def test_while_it_starts(
    make: Any,
    own_valkey: ValkeyServer,  # noqa: F811
) -> None:
    daemon = make(redis_url=own_valkey.url, shutdown_seconds=600.0)
    own_valkey.freeze()
    daemon.start(wait=False)
    process = psutil.Process(daemon.process.pid)
    until(
        lambda: any(
            one.raddr and one.raddr.port == own_valkey.port for one in process.net_connections()
        ),
        seconds=60,
        what="a question to Redis",
    )
    send(daemon, signal.SIGTERM)
    ends(daemon, within=4)
    assert not has_said(daemon, "ready")


def test_children_that_hang_do_not_outlive_a_killed_daemon(make: Any) -> None:
    daemon = make()
    daemon.start()
    until(lambda: daemon.rows("SELECT 1 FROM ledger"), seconds=60, what=daemon.last_words)
    children = [child_of(daemon, one) for one in ("valkey", "edge_child", "indexer.extract")]
    daemon.tree()
    for one in children:
        assert one is not None
        one.suspend()
    process, daemon.process = daemon.process, None
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    daemon.assert_nothing_left()


def test_parts_that_hang_are_cut_short(make: Any) -> None:
    """The embedded queue server and the index obey no signal any more."""
    daemon = make()
    daemon.start()
    until(lambda: daemon.rows("SELECT 1 FROM ledger"), seconds=60, what=daemon.last_words)
    for one in daemon.tree():
        if one.pid != daemon.process.pid:
            one.suspend()
    began = time.monotonic()
    send(daemon, signal.SIGTERM)
    ends(daemon, within=8)
    assert time.monotonic() - began < 30

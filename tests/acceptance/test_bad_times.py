"""What happens around the daemon: a folder goes, the queue dies, somebody else is there already."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.domain.explanations import EXPLANATIONS
from support.daemon import Daemon, drivefeed, running
from support.processes import environment, named, until
from support.sim import Sim

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = 12


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    """A drive with a folder 'Team' that holds some files, and a bystander."""
    folder = tmp_path / "OneDrive"
    (folder / "Team" / "Deep").mkdir(parents=True)
    (folder / "bystander.txt").write_text("Nobody connected me.\n")
    write(folder / "Team", range(FILES))
    return folder


def write(team: Path, numbers: range) -> None:
    for number in numbers:
        below = team / "Deep" if number % 2 else team
        below.mkdir(exist_ok=True)
        (below / f"file {number}.txt").write_text(
            f"File {number} is about the year {1500 + number}.\n"
        )


@pytest.fixture
def team(tmp_path: Path, drive: Path) -> Iterator[Daemon]:
    """A daemon that is connected to the folder 'Team' alone, not started yet."""
    sim = Sim(drive, tmp_path / "graphsim")
    sim.start()
    daemon = Daemon(tmp_path, sim, connection='folder = "Team"', grace=1.0)
    try:
        yield daemon
        daemon.stop()
    finally:
        daemon.end()
        sim.stop()


def status(daemon: Daemon) -> dict[str, Any]:
    (one,) = daemon.json("status")
    found: dict[str, Any] = one
    return found


def asks(daemon: Daemon) -> str | None:
    (row,) = daemon.rows("SELECT attention FROM connections")
    return row["attention"]


def waits(daemon: Daemon) -> str | None:
    (row,) = daemon.rows("SELECT hold FROM drives")
    return row["hold"]


def test_a_folder_that_disappears_takes_nothing_with_it(team: Daemon, drive: Path) -> None:
    team.start()
    # Some files are searchable, others still under way.
    until(lambda: len(team.ledger()) >= 2, seconds=60, what=team.last_words)
    (drive / "Team").rename(drive / "Elsewhere")
    (drive / "Elsewhere").rename(drive.parent / "out of sight")
    until(lambda: asks(team) == "folder_gone", seconds=60, what=team.last_words)
    told = " ".join(team.command("status").split())
    assert "The connected folder is no longer there; its documents are kept." in told
    assert "Restore the folder" in told
    certificate = team.json("verify", ok=(1,))
    assert "'OneDrive' waits for a person: The connected folder" in certificate["remarks"][0]
    missing = certificate["drift"]["extra_in_catalog"]
    assert missing["count"] == FILES
    assert "Deep/file 1.txt" in missing["examples"]
    before = team.points(), team.objects().keys(), team.ledger()
    rounds = team.sim.mark()
    until(
        lambda: len(team.sim.requests(since=rounds, op="delta")) >= 6,
        seconds=60,
        what="further rounds",
    )
    points, objects, ledger = before
    assert points.items() <= team.points().items()
    assert objects <= team.objects().keys()
    assert ledger == team.ledger()[: len(ledger)]
    assert not team.rows("SELECT id FROM imports WHERE state IN ('withdrawing', 'withdrawn')")
    (drive.parent / "out of sight").rename(drive / "Team")
    write(drive / "Team", range(FILES, FILES + 3))
    team.wait_for_rest(files=FILES + 3)
    until(lambda: asks(team) is None, seconds=30, what="a calm connection")
    (progress,) = team.json("status")
    assert progress["searchable"] == FILES + 3
    assert len(team.objects()) == len(team.points()) == len(team.ledger()) == FILES + 3
    assert team.json("verify")["holds"]


@pytest.mark.cell("Microsoft Graph", "down")
def test_a_whole_drive_that_disappears_takes_nothing_with_it(team: Daemon, drive: Path) -> None:
    team.start()
    team.wait_for_rest(files=FILES)
    drive.rename(drive.parent / "out of sight")
    until(lambda: waits(team), seconds=60, what=team.last_words)
    # graphsim answers 503 with a time to come back, as Graph does; without one it counts as down.
    assert status(team)["hold"] in {"throttled", "waiting_for_source"}
    assert EXPLANATIONS[status(team)["hold"]].meaning in " ".join(team.command("status").split())
    until(
        lambda: status(team)["budget"]["throttled_seconds"] > 0,
        seconds=30,
        what=lambda: f"the throttle to be told: {status(team)['budget']}",
    )
    budget = status(team)["budget"]
    assert (budget["accounts"], budget["is_shared"]) == (["test"], True)
    assert FILES < budget["used_day"] < budget["per_day"]
    assert "resource units in the last minute" in " ".join(team.command("status").split())
    assert len(team.objects()) == len(team.points()) == FILES
    assert team.search("the year 1503")
    (drive.parent / "out of sight").rename(drive)
    write(drive / "Team", range(FILES, FILES + 1))
    team.wait_for_rest(files=FILES + 1)
    until(lambda: waits(team) is None, seconds=30, what="a calm drive")
    assert team.json("verify")["holds"]


def test_the_queue_server_is_killed_in_the_middle_and_comes_back(
    tmp_path: Path, drive: Path
) -> None:
    write(drive, range(100, 140))
    count = FILES + 41
    with running(tmp_path, drive) as daemon:
        for enough in (3, 20):
            until(lambda: len(daemon.ledger()) >= enough, seconds=90, what=daemon.last_words)  # noqa: B023 - asked at once
            (server,) = named(daemon.tree(), "valkey")
            server.send_signal(signal.SIGKILL)
            until(
                lambda: [
                    one
                    for one in named(daemon.tree(), "valkey")
                    if one.pid != server.pid  # noqa: B023 - asked at once
                ],
                seconds=30,
                what="another queue server",
            )
        daemon.wait_for_rest(files=count, seconds=180)
        said = [one.get("words", "") for one in daemon.log() if one["event"] == "embedded_queue"]
        assert said.count("The embedded queue server was ended by the signal SIGKILL.") == 2
        assert said.count("The embedded queue server is back.") == 2
        assert len(daemon.ledger()) == len(daemon.objects()) == len(daemon.points()) == count
        assert daemon.json("verify")["holds"]


def test_a_second_daemon_is_refused_and_harms_nobody(tmp_path: Path, drive: Path) -> None:
    with running(tmp_path, drive) as daemon:
        until(lambda: len(daemon.ledger()) >= 1, seconds=60, what=daemon.last_words)
        settings = (daemon.data / "drivefeed.toml").read_bytes()
        refused = drivefeed("--data", str(daemon.data), "up", cwd=tmp_path, ok=(3,))
        words = refused.stderr.splitlines()[-1]
        assert daemon.process is not None
        assert words.startswith(
            f"drivefeed: Another drivefeed (process {daemon.process.pid}) already uses the data "
            f"folder {daemon.data}; "
        )
        assert "Traceback" not in refused.stderr
        demo = drivefeed(
            "--data", str(daemon.data), "demo", str(drive), "--once", cwd=tmp_path, ok=(3,)
        )
        assert "Another drivefeed" in demo.stderr
        assert "Traceback" not in demo.stderr
        # The first one keeps its door, its settings, its claims and its work.
        assert (daemon.data / "drivefeed.toml").read_bytes() == settings
        assert daemon.answers()
        daemon.wait_for_rest(files=FILES + 1)
        assert not [one for one in daemon.log() if one["event"] == "dead_owners_rows_due"]
        assert len(daemon.ledger()) == len(daemon.points()) == FILES + 1
        assert daemon.json("verify")["holds"]


def test_ports_in_use(tmp_path: Path, drive: Path) -> None:
    with running(tmp_path, drive) as daemon:
        daemon.wait_for_rest(files=FILES + 1)
    port = int((daemon.data / "queue" / "port").read_text())
    with ExitStack() as stack:
        taken = stack.enter_context(socket.socket())
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        # The queue server takes another port.
        daemon.sim.start()
        stack.callback(daemon.sim.stop)
        stack.callback(daemon.end)
        again = Daemon(tmp_path, daemon.sim)
        stack.callback(again.end)
        again.start()
        write(drive, range(50, 51))
        again.wait_for_rest(files=FILES + 2)
        again.stop()
        # graphsim was told which port to take, so it says that it cannot.
        ended = subprocess.run(
            [sys.executable, "-m", "graphsim", str(drive), "--port", str(port)],
            env=environment(XDG_STATE_HOME=str(tmp_path / "state")),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert ended.returncode == 1
    assert str(port) in ended.stderr, ended.stderr
    assert "Traceback" not in ended.stderr
    assert (drive / "bystander.txt").exists()

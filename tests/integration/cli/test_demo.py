"""The demo while somebody watches: keys, simulated failures, stopped workers, and its end."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING

import psutil
import pytest

from integration.cli.conftest import PATIENCE_S, end, write_files
from integration.cli.terminal import Terminal
from support.daemon import COMMAND

if TYPE_CHECKING:
    from collections.abc import Iterator

    from integration.cli.conftest import CommandLine
    from support.forks import Fork

pytestmark = pytest.mark.slow

DOOR = "drivefeed-demo/data-*/daemon.json"


def last_words(process: subprocess.Popen[bytes], *, seconds: float) -> bytes:
    """Return what a process says until it ends; where it does not, where it stands."""
    try:
        return process.communicate(timeout=seconds)[1]
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        _, stands = process.communicate(timeout=seconds)
        raise AssertionError(f"it did not end:\n{stands.decode()[-8000:]}") from None


def wait_for_door(command: CommandLine, process: Fork | subprocess.Popen[bytes]) -> None:
    while not list(command.home.glob(DOOR)):
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.1)


def test_once_with_a_failure_ends_with_everything_searchable(command: CommandLine) -> None:
    write_files(command.home / "Docs")

    ended = command.json("demo", "Docs", "--once", "--fail")

    assert len(ended["failure"]["refused"]) == 1
    assert ended["failure"]["retried"] == ended["failure"]["refused"]
    assert ended["certificate"]["holds"] is True
    (one,) = ended["connections"]
    assert (one["searchable"], one["failed"], one["skipped"]) == (3, 1, 1)
    story = command.json("why", ended["failure"]["refused"][0])[0]["versions"][0]
    reasons = [event["reason"] for event in story["events"]]
    assert "download_forbidden" in reasons
    assert story["round"] == 2


def test_once_ends_on_a_paused_connection_and_says_so(finished: CommandLine) -> None:
    assert finished.afresh("pause").returncode == 0
    try:
        answer = finished.afresh("demo", "Docs", "--once")

        assert answer.returncode == 1
        assert "The connection is paused" in answer.stdout
        assert "drivefeed resume" in answer.stdout
    finally:
        assert finished.afresh("resume").returncode == 0


def test_a_second_run_notices_what_changed_meanwhile(finished: CommandLine) -> None:
    (finished.home / "Docs" / "Late.md").write_text("The lighthouse keeper retired in spring.\n")
    try:
        answer = finished.afresh("demo", "Docs", "--once")

        assert answer.returncode == 0, answer.stderr
        assert "6 found = 4 searchable" in answer.stdout
        found = json.loads(finished.afresh("search", "lighthouse keeper", "--json").stdout)
        assert found[0]["path"] == "Late.md"
    finally:
        (finished.home / "Docs" / "Late.md").unlink()


@pytest.fixture
def terminal(command: CommandLine) -> Iterator[Terminal]:
    """A demo over five files on a terminal, everything at rest."""
    write_files(command.home / "Docs")
    shown = Terminal(command.start, "demo", "Docs")
    yield shown
    end(shown.process)
    shown.close()


def test_keys_fail_clear_stop_and_start(terminal: Terminal, command: CommandLine) -> None:
    read = terminal.wait_for(r"100 %  5 of 5 files done .*up to date")
    note = command.home / "Docs" / "Note.md"

    terminal.press("f")
    read = terminal.wait_for("the next download will be refused", since=read)
    note.write_text("Dredging of the basin begins after Easter.\n")
    read = terminal.wait_for(r"Note\.md  failed: download_forbidden", since=read)
    read = terminal.wait_for(r"→ Give the account the right to read", since=read)

    terminal.press("c")
    read = terminal.wait_for(r"Note\.md  became searchable", since=read)

    terminal.press("w")
    read = terminal.wait_for(r"Workers are stopped: nothing waits yet", since=read)
    note.write_text("Dredging of the basin ended before Easter.\n")
    read = terminal.wait_for(r"waiting in the queues: 1 transfer", since=read)
    terminal.press("w")
    read = terminal.wait_for(r"the new version is searchable", since=read)

    note.rename(note.with_name("Dredging.md"))
    read = terminal.wait_for(r"Dredging\.md  renamed, was 'Note\.md'", since=read)
    note.with_name("Dredging.md").unlink()
    read = terminal.wait_for(r"Dredging\.md  deleted: hidden from search", since=read)

    terminal.press("s")
    read = terminal.wait_for(r"Slow: each step waits", since=read)
    terminal.press("q")
    assert terminal.wait_until_ended() == 0
    assert terminal.modes == terminal.before


def test_ctrl_c_ends_in_order_and_gives_the_terminal_back(terminal: Terminal) -> None:
    terminal.wait_for(r"f  fail")
    assert terminal.modes != terminal.before

    terminal.press("\x03")

    assert terminal.wait_until_ended() == 0, terminal.seen[-2000:]
    assert "Traceback" not in terminal.seen
    assert terminal.modes == terminal.before


def test_sigterm_ends_in_order_without_a_terminal(command: CommandLine) -> None:
    write_files(command.home / "Docs")
    with (command.home / "printed").open("wb") as printed:
        process = command.start(
            "demo", "Docs", stdin=subprocess.DEVNULL, stdout=printed, stderr=printed
        )
    try:
        wait_for_door(command, process)
        second = command("demo", "Docs")
        process.send_signal(signal.SIGTERM)

        assert process.wait(60) == 0
        assert "Traceback" not in (command.home / "printed").read_text()
        assert second.returncode == 3
        assert f"Another drivefeed (process {process.pid}) already uses" in second.stderr
        assert not list(command.home.glob(DOOR))
    finally:
        end(process)


def test_of_two_demos_begun_at_the_same_moment_one_goes_on(command: CommandLine) -> None:
    write_files(command.home / "Docs")
    printed = [command.home / name for name in ("first", "second")]
    started = []
    for path in printed:
        with path.open("wb") as out:
            started.append(
                command.start(
                    "demo", "Docs", "--once", stdin=subprocess.DEVNULL, stdout=out, stderr=out
                )
            )
    try:
        codes = [one.wait(PATIENCE_S) for one in started]
    finally:
        for one in started:
            end(one)
    assert sorted(codes) == [0, 3], [path.read_text() for path in printed]
    refused = codes.index(3)
    other = started[1 - refused].pid
    assert f"Another drivefeed (process {other}) already uses" in printed[refused].read_text()


def test_a_demo_whose_graphsim_was_killed_ends_with_a_sentence(command: CommandLine) -> None:
    write_files(command.home / "Docs")
    # graphsim is known by its command line, which a fork does not have.
    process = subprocess.Popen(
        [*COMMAND, "demo", "Docs", "--slow"],
        cwd=command.home,
        env=command.environment,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        wait_for_door(command, process)
        (served,) = [
            child
            for child in psutil.Process(process.pid).children()
            if "graphsim" in child.cmdline()
        ]
        served.kill()
        said = last_words(process, seconds=60)
    finally:
        end(process)
    assert process.returncode == 3
    assert b"graphsim, which serves the folder to the demo, has ended (exit status -9)" in said

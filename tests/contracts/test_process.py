"""A fork is a process like one with an interpreter of its own, for all that a test can see."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from support import forks
from support.processes import REPOSITORY, environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Start = Callable[..., forks.Fork | subprocess.Popen[str]]

MIRROR = "support.mirror"
PATIENCE_S = 60


def interpreted(*words: str, env: dict[str, str], **options: Any) -> subprocess.Popen[str]:
    places = env | {"PYTHONPATH": str(REPOSITORY / "tests")}
    return subprocess.Popen([sys.executable, "-m", MIRROR, *words], env=places, **options)


def forked(*words: str, **options: Any) -> forks.Fork:
    return forks.Fork(MIRROR, words, **options)


@pytest.fixture(params=[interpreted, forked])
def start(request: pytest.FixtureRequest, tmp_path: Path) -> Start:
    return partial(
        request.param,
        cwd=tmp_path,
        env=environment(DRIVEFEED_WORD="a word"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process: forks.Fork | subprocess.Popen[str]) -> tuple[Any, str, int]:
    """Return what it printed, what it complained of, and how it ended."""
    assert process.stdout is not None
    assert process.stderr is not None
    with process:
        printed, complained = process.stdout.read(), process.stderr.read()
        return json.loads(printed), complained, process.wait(PATIENCE_S)


def test_it_finds_itself_alone(start: Start, tmp_path: Path) -> None:
    seen, complained, code = said(start("leave", "0", "two words", start_new_session=True))
    assert seen == {
        "words": ["0", "two words"],
        "folder": str(tmp_path),
        "environment": {"DRIVEFEED_WORD": "a word"},
        "leads_session": True,
        "threads": 1,
        "descriptors": [0, 1, 2, 3],
        "typed": "",
        "catches": False,
        "interrupts": True,
    }
    assert (complained, code) == ("the end\n", 0)


def test_it_stays_in_the_session_of_who_starts_it(start: Start) -> None:
    assert said(start("leave", "0"))[0]["leads_session"] is False


def test_its_exit_codes(start: Start) -> None:
    assert said(start("leave", "7"))[2] == 7
    _, complained, code = said(start("complain"))
    assert (code, complained) == (1, "a complaint\nthe end\n")
    _, complained, code = said(start("raise", "some trouble"))
    assert code == 1
    assert "ValueError: some trouble" in complained


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_it_dies_of_a_signal(start: Start, number: signal.Signals) -> None:
    process = start("stay", start_new_session=True)
    assert process.stdout is not None
    process.stdout.readline()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.05)
    assert process.poll() is None
    os.killpg(process.pid, number)
    assert process.wait(PATIENCE_S) == process.returncode == -number
    process.send_signal(number)


def test_it_reads_what_is_written_to_it(start: Start) -> None:
    process = start("leave", "0", stdin=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.write("some lines\n")
    process.stdin.close()
    assert said(process)[0]["typed"] == "some lines\n"


def test_both_outputs_in_one(start: Start) -> None:
    process = start("complain", stderr=subprocess.STDOUT)
    assert process.stdout is not None
    with process:
        assert process.stdout.read().endswith("}\na complaint\nthe end\n")


def test_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired) as late:
        forks.run(MIRROR, ("stay",), cwd=tmp_path, env=environment(), timeout=0.5)
    assert json.loads(late.value.output)["words"] == []

"""What stands in the way is one sentence on standard error and exit code 3, never a traceback."""

from __future__ import annotations

import re
import sqlite3
import sys
from typing import TYPE_CHECKING

import pytest

from support.daemon import COMMAND
from support.permissions import give_up_overriding_permissions

if TYPE_CHECKING:
    import subprocess

    from integration.cli.conftest import CommandLine


def sentence(answer: subprocess.CompletedProcess[str]) -> str:
    assert answer.returncode == 3, answer.stdout + answer.stderr
    assert answer.stdout == ""
    assert "Traceback" not in answer.stderr
    assert answer.stderr.startswith("drivefeed: ")
    return answer.stderr


def test_no_installation_here(command: CommandLine) -> None:
    said = sentence(command("status", "--json"))

    assert "There is no drivefeed in 'drivefeed-data'. Start one with 'drivefeed init'" in said
    assert list(command.home.iterdir()) == []


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        ("poll_seconds = [", "cannot be read"),
        ("poll_seconds = 0.1\nnonsense = 1\n", "poll_seconds"),
        ("\x00\x01", "cannot be read"),
    ],
)
def test_settings_that_cannot_be_used(command: CommandLine, toml: str, words: str) -> None:
    (command.home / "drivefeed.toml").write_text(toml)

    said = sentence(command("--config", "drivefeed.toml", "status"))

    assert words in said
    assert ("nonsense" in said) == ("nonsense" in toml)


def test_a_catalog_that_is_none(command: CommandLine) -> None:
    (command.home / "data").mkdir()
    (command.home / "data" / "catalog.sqlite").write_bytes(b"no database at all" * 100)

    assert "The catalog is damaged" in sentence(command("--data", "data", "status"))


def test_a_data_folder_that_is_a_file(command: CommandLine) -> None:
    (command.home / "data").write_text("")

    assert "'data'" in sentence(command("--data", "data", "up"))


def test_a_locked_catalog(finished: CommandLine) -> None:
    (found,) = finished.home.glob("drivefeed-demo/data-*/catalog.sqlite")
    script = (
        "import drivefeed.catalog.sqlite as sqlite, sys\n"
        "sqlite._BUSY_TIMEOUT_MS = 50\n"
        "sys.argv = ['drivefeed', 'pause']\n"
        "from drivefeed.cli import main; main()"
    )
    with sqlite3.connect(found) as holder:
        holder.execute("BEGIN IMMEDIATE")
        answer = finished.run([sys.executable, "-c", script])
        holder.rollback()

    assert "file locked, so nothing can be recorded" in sentence(answer)


def test_a_data_folder_of_somebody_else(command: CommandLine) -> None:
    data = command.home / "data"
    data.mkdir()
    (data / "catalog.sqlite").touch()
    data.chmod(0)
    words = [*COMMAND, "--data", "data", "status"]
    try:
        said = sentence(command.run(words, preexec_fn=give_up_overriding_permissions))
    finally:
        data.chmod(0o700)

    assert re.search(r"'data/.*' cannot be used: Permission denied\.", said)

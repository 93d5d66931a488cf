from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support import forks
from support.commands import run_command

if TYPE_CHECKING:
    from collections.abc import Iterator

SOURCES = Path(__file__).resolve().parents[3] / "src"
LAST_DEMO = "This is the data folder of the last demo"
PATIENCE_S = 100
_LOOKING = frozenset({"status", "imports", "why", "search", "doctor", "queues", "verify"})
FILES = {
    "Harbour/Cranes.md": "# Cranes\n\nThe crane driver wears a harness above four metres.\n",
    "Harbour/Ferries.txt": "Ferries to the island leave at seven and at noon.\n",
    "Prices.csv": "fish,price\nherring,4\nplaice,9\n",
    "Broken.docx": "this is no archive at all\n",
    "Nothing.txt": "",
}


class CommandLine:
    """`drivefeed` as somebody would type it, in a folder of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        self.environment = {**kept, "PYTHONPATH": str(SOURCES), "COLUMNS": "80"}
        # One that hangs is asked by a signal where.
        self.environment["PYTHONFAULTHANDLER"] = "1"
        # What is on this machine is reached directly, whatever proxy the environment names.
        self.environment |= dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
        self._answers: dict[tuple[str, ...], subprocess.CompletedProcess[str]] = {}

    def __call__(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command; one that only looks, and was asked before, is not run again.

        What only looks runs inside of this process, in which all libraries are loaded already.
        """
        if arguments not in self._answers:
            looks = arguments[:1] and arguments[0] in _LOOKING
            self._answers[arguments] = (
                run_command(*arguments, cwd=self.home, ok=range(256))
                if looks
                else self.afresh(*arguments)
            )
        return self._answers[arguments]

    def afresh(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command, whatever was answered before."""
        return forks.run(
            forks.DRIVEFEED, arguments, cwd=self.home, env=self.environment, timeout=PATIENCE_S
        )

    def run(self, words: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        """Run any program."""
        return subprocess.run(
            words,
            **options,
            cwd=self.home,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Run with --json; standard output must be JSON and nothing else."""
        answer = self(*arguments, "--json")
        assert answer.returncode == code, answer.stderr
        complaints = [line for line in answer.stderr.splitlines() if LAST_DEMO not in line]
        assert complaints == []
        return json.loads(answer.stdout)

    def start(self, *arguments: str, **options: Any) -> forks.Fork:
        """Start a command in a session of its own."""
        return forks.Fork(
            forks.DRIVEFEED,
            arguments,
            cwd=self.home,
            env=self.environment,
            start_new_session=True,
            **options,
        )


def end(process: forks.Fork | subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def write_files(folder: Path) -> None:
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="package")
def finished(tmp_path_factory: pytest.TempPathFactory) -> CommandLine:
    """A demo that ran to its end over five small files; its data stays for all tests."""
    home = tmp_path_factory.mktemp("cli")
    write_files(home / "Docs")
    (home / "Docs" / "Shortcut.md").symlink_to("Cranes.md")
    command = CommandLine(home)
    answer = command("demo", "Docs", "--once")
    assert answer.returncode == 0, answer.stderr + answer.stdout
    command.first_run = answer.stdout  # type: ignore[attr-defined]  # read by one test
    return command


@pytest.fixture
def command(tmp_path: Path) -> Iterator[CommandLine]:
    """The command line in an empty folder."""
    yield CommandLine(tmp_path)
    shutil.rmtree(tmp_path, ignore_errors=True)

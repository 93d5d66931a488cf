"""drivefeed as a process of its own, and what it did, seen from outside.

Nothing here asks drivefeed's code: rows are read from the catalog's file, objects from the store's
folder, points from the daemon's socket, requests from graphsim's log.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import httpx

from support import forks
from support.commands import run_command
from support.evidence import Charge, objects_in, read_log, rows_in, unrest_in
from support.processes import around, described, environment, is_alive, tree, until
from support.sim import Sim

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    import psutil

COMMAND = (sys.executable, "-c", "from drivefeed.cli import main; main()")
READY_SECONDS = 60.0
END_SECONDS = 60.0


def drivefeed(
    *words: str, cwd: Path, seconds: float = 120.0, ok: Sequence[int] = (0,)
) -> subprocess.CompletedProcess[str]:
    """Run a command of drivefeed in a process of its own, to its end."""
    done = forks.run(forks.DRIVEFEED, words, cwd=cwd, env=environment(), timeout=seconds)
    assert done.returncode in ok, (words, done.returncode, done.stdout[-4000:], done.stderr[-4000:])
    return done


def _fork(words: Sequence[str], **options: Any) -> forks.Fork:
    return forks.Fork(forks.DRIVEFEED, words, **options)


def _interpret(words: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*COMMAND, *words], **options)


class Daemon:
    """``drivefeed up`` in a process group of its own, over one data folder.

    Args:
        home: its working directory; settings and data lie below it.
        sim: serves its account.
        data: its data folder, if not ``home/data``.
        poll: seconds between two looks at the drive.
        grace: seconds until removed content is erased.
        interpreter: start an interpreter for it, as an installation does, and not a fork: where a
            test looks at memory or at command lines.
        settings: further lines for the top of the TOML file.
        connection: further lines for the connection's section.
    """

    def __init__(
        self,
        home: Path,
        sim: Sim,
        *,
        data: Path | None = None,
        poll: float = 1.0,
        grace: float = 600.0,
        settings: str = "",
        connection: str = "",
        interpreter: bool = False,
    ) -> None:
        self.home = home
        self.sim = sim
        self.data = data or home / "data"
        self.process: forks.Fork | subprocess.Popen[bytes] | None = None
        self._start = _interpret if interpreter else _fork
        self._words: tuple[str, ...] = ("up",)
        self._seen: set[psutil.Process] = set()
        self.data.mkdir(parents=True, exist_ok=True)
        if sim.endpoints:
            self._write_settings(poll, grace, settings, connection)

    def _write_settings(self, poll: float, grace: float, more: str, connection: str) -> None:
        ends = self.sim.endpoints
        account = {
            "name": "test",
            "org": "test",
            "tenant_id": ends["tenant_id"],
            "client_id": ends["client_id"],
            "client_secret": ends["client_secret"],
            "authority": ends["login_url"],
            "graph_url": ends["graph_url"],
            "ca_file": ends["ca_file"],
        }
        lines = [
            f"poll_seconds = {poll}",
            f"poll_slowest_seconds = {poll}",
            "log_json = true",
            "ru_per_minute = 1000000",
            more,
            "[[accounts]]",
            *(f"{key} = {json.dumps(value)}" for key, value in account.items()),
            "[[connections]]",
            'account = "test"',
            f"drive_id = {json.dumps(ends['drive_id'])}",
            'name = "OneDrive"',
            f"grace_seconds = {grace}",
            connection,
        ]
        (self.data / "drivefeed.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    # Life and death

    def start(self, *, wait: bool = True, **variables: str) -> None:
        """Start it; returns once its socket answers, or at once without ``wait``."""
        assert self.process is None
        # A killed daemon leaves the paper with its socket's path.
        (self.data / "daemon.json").unlink(missing_ok=True)
        with (self.home / "up.log").open("ab") as log:
            self.process = self._start(
                ("--data", str(self.data), *self._words),
                cwd=self.home,
                env=environment(**variables),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if wait:
            until(self.answers, seconds=READY_SECONDS, what=self.last_words)

    def answers(self) -> bool:
        """Whether its socket answers."""
        assert self.process is not None
        assert self.process.poll() is None, f"drivefeed ended: {self.last_words()}"
        with suppress(httpx.HTTPError, OSError, ValueError):
            return bool(self.get("/healthz")["status"] == "ok")
        return False

    def stop(self) -> None:
        """End it in order, and see that nothing of it is left."""
        process, self.process = self.process, None
        if process is None:
            return
        self._look(process.pid)
        process.send_signal(signal.SIGTERM)
        code = process.wait(END_SECONDS)
        assert code == 0, f"drivefeed ended with {code}: {self.last_words()}"
        self.assert_nothing_left()

    def kill(self) -> None:
        """SIGKILL its whole process group, as a machine that goes down would."""
        process, self.process = self.process, None
        assert process is not None
        self._look(process.pid)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(END_SECONDS)

    def end(self) -> None:
        """Clean up after a test, whatever became of it; end what is left by its id."""
        process, self.process = self.process, None
        if process is not None:
            self._look(process.pid)
            process.kill()
            process.wait(END_SECONDS)
        for one in self.left():
            with suppress(Exception):
                one.kill()

    def _look(self, pid: int) -> None:
        self._seen.update(tree(pid))

    def tree(self) -> list[psutil.Process]:
        """Return the daemon's process and all below it."""
        assert self.process is not None
        self._look(self.process.pid)
        return tree(self.process.pid)

    def left(self) -> list[psutil.Process]:
        """Return processes that outlived the daemon."""
        mine = self.sim.process.pid if self.sim.process is not None else None
        known = {one for one in self._seen if is_alive(one)} | set(around(self.home))
        return [one for one in known if one.pid != mine]

    def assert_nothing_left(self, *, seconds: float = 10.0) -> None:
        """Fail if a child outlives the daemon for longer than it takes to notice."""
        until(
            lambda: not self.left(),
            seconds=seconds,
            what=lambda: f"an end of {described(self.left())}",
        )

    def last_words(self) -> str:
        """Return the end of its log."""
        with suppress(FileNotFoundError):
            return (self.home / "up.log").read_text(errors="replace")[-3000:]
        return "no log"

    def log(self) -> list[dict[str, Any]]:
        """Return what it logged; a line that is no JSON comes as ``{"event": line}``."""
        return read_log(self.home / "up.log")

    # What it says

    def get(self, path: str, **asked: Any) -> Any:
        """Ask the daemon's socket."""
        with self._client() as client:
            answer = client.get(path, params=asked)
        return answer.raise_for_status().json()

    def _client(self) -> httpx.Client:
        door = json.loads((self.data / "daemon.json").read_text())
        transport = httpx.HTTPTransport(uds=door["socket"])
        return httpx.Client(transport=transport, base_url="http://daemon", timeout=60.0)

    def search(self, words: str, *, limit: int = 10) -> list[dict[str, Any]]:
        """Search through the socket; quicker than a command, and the same search."""
        found: list[dict[str, Any]] = self.get("/v1/search", q=words, limit=limit)
        return found

    def command(self, *words: str, ok: Sequence[int] = (0,)) -> str:
        """Run a command on the data folder, in this process; return what it printed."""
        return run_command("--data", str(self.data), *words, cwd=self.home, ok=ok).stdout

    def json(self, *words: str, ok: Sequence[int] = (0,)) -> Any:
        """Run a command with ``--json``; return its answer."""
        return json.loads(self.command(*words, "--json", ok=ok))

    # What is true outside of it

    def points(self) -> dict[tuple[str, int], tuple[bool, int]]:
        """Return what the index holds: (import id, round) → (live, points)."""
        with self._client() as client:
            answer = client.get("/v1/index/rounds").raise_for_status()
        rows = [json.loads(line) for line in answer.text.splitlines()]
        return {(import_id, round_): (live, count) for import_id, round_, live, count in rows}

    def objects(self) -> dict[str, Path]:
        """Return the objects of the store: key → file; no unfinished uploads."""
        return objects_in(self.data)

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """Read the catalog's file."""
        return rows_in(self.data, sql, *values)

    def ledger(self) -> list[Charge]:
        """Return all charges, in the order they were made."""
        found = self.rows("SELECT import_id, document_id, sha256, pages FROM ledger ORDER BY id")
        return [Charge(**row) for row in found]

    # Waiting

    def wait_for_rest(self, *, files: int, seconds: float = 120.0) -> float:
        """Wait until every file on the drive has its outcome and nothing is under way.

        Args:
            files: how many files there are; the daemon may not have listed all of them yet.

        Returns:
            The seconds it took.
        """
        started = time.monotonic()
        until(
            lambda: self._rests(files),
            seconds=seconds,
            what=lambda: self._standing(files),
            pause=0.3,
        )
        return time.monotonic() - started

    def _rests(self, files: int) -> bool:
        if self.process is not None:
            assert self.process.poll() is None, f"drivefeed ended: {self.last_words()}"
            self._look(self.process.pid)
        return not self.unrest(files)

    def unrest(self, files: int) -> dict[str, int]:
        """Count what is still to do."""
        return unrest_in(self.data, files)

    def _standing(self, files: int) -> str:
        return f"rest of {files} files; {self.unrest(files)}\n{self.last_words()}"


@contextmanager
def running(home: Path, folder: Path, **wanted: Any) -> Iterator[Daemon]:
    """Run graphsim over a folder and a daemon that imports it; end both, with all children."""
    sim = Sim(folder, home / "graphsim")
    daemon: Daemon | None = None
    try:
        sim.start()
        daemon = Daemon(home, sim, **wanted)
        daemon.start()
        yield daemon
        daemon.stop()
    finally:
        if daemon is not None:
            daemon.end()
        sim.stop()

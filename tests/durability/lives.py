"""Lives of drivefeed over one data folder: each is a fork of a process that has it loaded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support.processes import REPOSITORY, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from durability.memories import Memory

PATIENCE_SECONDS = 180.0
"""So long may a busy machine take for what takes seconds; what is stuck is stuck after that too."""
LOOK_SECONDS = 0.1
MOST_LIVES = 400


class Host:
    """The process of :mod:`durability.host`, seen from the test."""

    def __init__(self, log: Path) -> None:
        self._log = log.open("ab")
        tests = str(REPOSITORY / "tests")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "durability.host"],
            env=environment(PYTHONPATH=f"{REPOSITORY / 'src'}{os.pathsep}{tests}"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.cpu = 0.0
        self.learned = False

    def ask(self, do: str, **words: Any) -> dict[str, Any]:
        """Send one job and return its answer."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": do} | words) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the host ended; see {self._log.name}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def wait(self, pid: int, seconds: float) -> int | None:
        """Return how a life ended, or None while it lasts."""
        answer = self.ask("wait", pid=pid, seconds=seconds)
        self.cpu += answer["cpu"]
        status: int | None = answer["status"]
        return status

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._log.close()


@dataclass
class Run:
    """One data folder and the lives over it, one after the other.

    Attributes:
        armed: names at which a life is still to die.
        deaths: names at which one died, as it said itself, in order.
        tuned: module constants that make a life quick, by dotted name.
    """

    host: Host
    home: Path
    memory: Memory
    armed: set[str] = field(default_factory=set)
    tuned: dict[str, Any] = field(default_factory=dict)
    tick_seconds: float = 1.0
    deaths: list[str] = field(default_factory=list)
    pid: int | None = None

    @property
    def data(self) -> Path:
        """The data folder."""
        return self.home / "data"

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """Read the catalog."""
        return self.memory.rows(sql, *values)

    def begin(self, **what: Any) -> int:
        """Begin a life: ``words`` of a command, or a ``scene`` with what is ``given`` to it."""
        answer = self.host.ask(
            "fork",
            home=str(self.home),
            folder=str(self.home),
            log=str(self.home / "lives.log"),
            environment={"DRIVEFEED_DATA_DIR": str(self.data)},
            armed=sorted(self.armed),
            tuned=self.tuned,
            tick_seconds=self.tick_seconds,
            **what,
        )
        pid: int = answer["pid"]
        return pid

    def ended(self, pid: int, status: int) -> bool:
        """Take note of an end; True if it was a death at a name, False if it was one in order."""
        if status != -signal.SIGKILL:
            return False
        path = self.home / "deaths"
        told = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        mine = [line.split()[1] for line in told if line.startswith(f"{pid} ")]
        assert mine, f"it was killed, and said of no place\n{self.last_words()}"
        # A daemon that was armed before may die where a command died meanwhile.
        assert mine[-1] in self.armed or mine[-1] in self.deaths, mine
        self.armed.discard(mine[-1])
        self.deaths.append(mine[-1])
        assert len(self.deaths) < MOST_LIVES
        return True

    def does(self, *words: str, ok: tuple[int, ...] = (0,)) -> int:
        """Run a command again and again until a life ends in order; return its exit code."""
        return self._to_the_end(lambda: self.begin(words=list(words)), ok, " ".join(words))

    def plays(self, scene: str, *, of: str = "durability.scenes", **given: Any) -> None:
        """The same for a function of a module of scenes."""
        name = f"{of}:{scene}"
        self._to_the_end(lambda: self.begin(scene=name, given=given), (0,), scene)

    def _to_the_end(self, begin: Callable[[], int], ok: tuple[int, ...], what: str) -> int:
        while True:
            pid = begin()
            status = self.host.wait(pid, PATIENCE_SECONDS)
            assert status is not None, f"{what} did not end"
            if not self.ended(pid, status):
                assert status in ok, f"{what} ended with {status}\n{self.last_words()}"
                return status

    def arrange(
        self,
        *,
        faults: dict[str, str] | None = None,
        actions: dict[str, tuple[str, str]] | None = None,
    ) -> None:
        """Have things go wrong, or files be written, once at a checkpoint; lives see it at once."""
        plan = {"faults": faults or {}, "actions": actions or {}}
        draft = self.home / "plan.draft"
        draft.write_text(json.dumps(plan), encoding="utf-8")
        draft.replace(self.home / "plan.json")

    def up(self, *, until: Callable[[], Any], what: str, **life: Any) -> None:
        """Keep a daemon alive, life after life, until something is true of the outside.

        Args:
            life: a scene to play instead of ``up``.
        """
        life = life or {"words": ["up"]}
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            if self.pid is None:
                self.pid = self.begin(**life)
            status = self.host.wait(self.pid, LOOK_SECONDS)
            if status is not None:
                pid, self.pid = self.pid, None
                assert self.ended(pid, status), f"it ended with {status}\n{self.last_words()}"
                deadline = time.monotonic() + PATIENCE_SECONDS
            elif until():
                return
            assert time.monotonic() < deadline, f"waited in vain for {what}\n{self.last_words()}"

    def down(self, **life: Any) -> None:
        """End the daemon in order, however many lives that takes."""
        while True:
            self.up(until=self.works, what="a daemon that works", **life)
            assert self.pid is not None
            os.kill(self.pid, signal.SIGTERM)
            status = self.host.wait(self.pid, PATIENCE_SECONDS)
            assert status is not None, "it did not end"
            pid, self.pid = self.pid, None
            if not self.ended(pid, status):
                assert status == 0, f"it ended with {status}\n{self.last_words()}"
                return

    def abandon(self) -> None:
        """Kill a life that is still there, whatever it does."""
        if self.pid is not None:
            os.kill(self.pid, signal.SIGKILL)
            self.host.wait(self.pid, PATIENCE_SECONDS)
            self.pid = None

    def works(self) -> bool:
        """Whether the life that runs has its socket open."""
        return f'"pid":{self.pid}' in self._door().replace(" ", "")

    def _door(self) -> str:
        try:
            return (self.data / "daemon.json").read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def learn(self) -> None:
        """Have the host load what the last life that ended in order had loaded."""
        names = json.loads((self.home / "modules.json").read_text(encoding="utf-8"))
        self.host.ask("learn", names=[one for one in names if one.startswith(LEARNED)])

    def wrong(self) -> list[str]:
        """Return the effects that had no checkpoints around them."""
        path = self.home / "wrong"
        return sorted(set(path.read_text(encoding="utf-8").splitlines())) if path.exists() else []

    def last_words(self) -> str:
        """Return the end of what its lives logged."""
        path = self.home / "lives.log"
        return path.read_text(errors="replace")[-4000:] if path.exists() else "no log"


LEARNED = (
    *(
        "drivefeed.",
        "sqlalchemy",
        "aiosqlite",
        "asyncpg",
        "alembic",
        "bullmq",
        "redis",
        "httpx",
        "httpcore",
    ),
    *("msgraph", "kiota", "azure", "msgspec", "apscheduler", "pydantic", "structlog", "h11"),
    *("anyio", "uvicorn", "fastapi", "starlette", "prometheus_client", "semantic_text_splitter"),
    *("cryptography", "msal", "requests", "urllib3", "qdrant", "typer", "rich", "click", "json"),
    *("std_uritemplate", "opentelemetry", "charset_normalizer", "certifi", "idna", "sniffio"),
    *("asyncio", "email", "http", "urllib", "concurrent", "multiprocessing", "encodings"),
)


@contextmanager
def running_host(log: Path) -> Iterator[Host]:
    """Run a host while the block lasts."""
    host = Host(log)
    try:
        yield host
    finally:
        host.close()

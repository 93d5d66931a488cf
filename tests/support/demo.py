"""``drivefeed demo`` as a process of its own: run to its end, or left running and looked at."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.daemon import COMMAND, READY_SECONDS, Daemon
from support.processes import environment, until
from support.sim import Sim

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True)
class Run:
    """A demo that ran to its end.

    Attributes:
        lines: what it printed, each with the seconds since the command began.
        seconds: from the command to its end, start and stop included.
    """

    code: int
    lines: list[tuple[float, str]]
    seconds: float

    @property
    def text(self) -> str:
        return "\n".join(line for _, line in self.lines)


def demo_once(cwd: Path, *words: str, seconds: float = 120.0) -> Run:
    """Run ``drivefeed demo --once`` to its end; it is ended after ``seconds``."""
    started = time.monotonic()
    with subprocess.Popen(
        [*COMMAND, "demo", *words, "--once"],
        cwd=cwd,
        env=environment(PYTHONUNBUFFERED="1"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        watch = threading.Timer(seconds, process.terminate)
        watch.start()
        try:
            assert process.stdout is not None
            lines = [(time.monotonic() - started, line.rstrip("\n")) for line in process.stdout]
            code = process.wait()
        finally:
            watch.cancel()
            process.kill()
    return Run(code, lines, time.monotonic() - started)


def data_folder(cwd: Path) -> Path:
    """Return the data folder of the last demo that ran in a folder."""
    (found,) = (cwd / "drivefeed-demo").glob("data-*")
    return found


class Demo(Daemon):
    """A demo that goes on until it is stopped; its graphsim is its own child.

    Args:
        cwd: where the command runs; its data folder lies below.
        folder: the folder it serves.
        data: its data folder, which may be that of an earlier demo.
    """

    def __init__(self, cwd: Path, folder: Path, data: Path, *, grace: float = 600.0) -> None:
        super().__init__(cwd, Sim(folder, data / "graphsim"), data=data)
        self._words = ("demo", str(folder), "--grace", str(grace))

    def start(self, *, wait: bool = True, **variables: str) -> None:
        """Start it; returns once its socket answers."""
        ready = self.data / "graphsim.json"
        ready.unlink(missing_ok=True)
        super().start(wait=False, **variables)
        if wait:
            until(ready.is_file, seconds=READY_SECONDS, what=self.last_words)
            self.sim.endpoints = json.loads(ready.read_text())
            until(self.answers, seconds=READY_SECONDS, what=self.last_words)


@contextmanager
def running_demo(cwd: Path, folder: Path, data: Path, *, grace: float = 600.0) -> Iterator[Demo]:
    """Run a demo; end it with all its children."""
    demo = Demo(cwd, folder, data, grace=grace)
    try:
        demo.start()
        yield demo
        demo.stop()
    finally:
        demo.end()

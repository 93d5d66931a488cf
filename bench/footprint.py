"""What drivefeed takes: start-up, memory, idle CPU, and the longest stall of the event loop.

Usage: python bench/footprint.py [--idle-seconds 20] [--files 17]

It runs ``drivefeed up`` over the sample documents, served by graphsim in a process of its own.
Memory is that of drivefeed and all its children (the queue server, the index, the extraction), as
private bytes (USS) and as resident bytes (RSS, in which shared pages count several times). The
last line is for machines: ``footprint key=value …``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil

from drivefeed.sample import write_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SOURCES = str(Path(__file__).parents[1] / "src")
MIB = 1 << 20
BOUNDS = {
    "ready_s": 3.0,
    "ready_again_s": 3.0,
    "idle_uss_mib": None,
    "loaded_uss_mib": 450.0,
    "loaded_rss_mib": None,
    "idle_cpu_percent": 3.0,
    "longest_stall_ms": 100.0,
}
SETTINGS = """
poll_seconds = {poll}
ru_per_minute = 1000000
log_json = true

[[accounts]]
name = "bench"
tenant_id = "{tenant_id}"
client_id = "{client_id}"
client_secret = "{client_secret}"
authority = "{login_url}"
graph_url = "{graph_url}"
ca_file = "{ca_file}"

[[connections]]
account = "bench"
drive_id = "{drive_id}"
"""


def wait_for(condition: Callable[[], Any], *, seconds: float, what: str) -> Any:
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise SystemExit(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.02)
    return value


@contextlib.contextmanager
def graphsim(folder: Path, state: Path) -> Iterator[dict[str, Any]]:
    ready = state / "ready.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "graphsim", str(folder), "--state", str(state),
         "--ready-file", str(ready)],
        env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        wait_for(ready.is_file, seconds=60, what="graphsim did not start")
        yield json.loads(ready.read_text())
    finally:
        process.terminate()
        process.wait()


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": SOURCES, **more}


class Running:
    """One ``drivefeed up``, and how long it took to answer."""

    def __init__(self, data: Path, config: Path) -> None:
        self._data = data
        began = time.monotonic()
        with (data / "up.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", "from drivefeed.cli import main; main()", "up"],
                env=environment(DRIVEFEED_DATA_DIR=str(data), DRIVEFEED_CONFIG=str(config)),
                stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip
        wait_for(self.health, seconds=60, what=f"drivefeed is not ready; see {data / 'up.log'}")
        self.ready_s = time.monotonic() - began

    def health(self) -> dict[str, Any] | None:
        try:
            door = json.loads((self._data / "daemon.json").read_text())
            transport = httpx.HTTPTransport(uds=door["socket"])
            with httpx.Client(transport=transport, timeout=10) as client:
                answer: dict[str, Any] = client.get("http://daemon/healthz").json()
        except (OSError, ValueError, httpx.HTTPError):
            return None
        return answer if answer["pid"] == self.process.pid else None

    def tree(self) -> list[psutil.Process]:
        root = psutil.Process(self.process.pid)
        return [root, *root.children(recursive=True)]

    def memory(self) -> tuple[float, float]:
        """USS and RSS of the tree in MiB."""
        uss = rss = 0
        for one in self.tree():
            with contextlib.suppress(psutil.NoSuchProcess):
                full = one.memory_full_info()
                uss, rss = uss + full.uss, rss + full.rss
        return uss / MIB, rss / MIB

    def cpu_seconds(self) -> dict[str, float]:
        return {
            f"{one.pid} {' '.join(one.cmdline())[-60:]}": sum(one.cpu_times()[:2])
            for one in self.tree()
        }

    def all_searchable(self, count: int) -> bool:
        with contextlib.closing(
            sqlite3.connect(f"file:{self._data / 'catalog.sqlite'}?mode=ro", uri=True)
        ) as catalog:
            rows = catalog.execute("SELECT count(*) FROM documents WHERE live_import_id NOT NULL")
            return bool(rows.fetchone()[0] >= count)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def measure(work: Path, idle_seconds: float, poll_seconds: float) -> dict[str, float]:
    served, data, state = work / "OneDrive", work / "data", work / "graphsim"
    data.mkdir()
    state.mkdir()
    write_sample(served)
    files = sum(path.is_file() for path in served.rglob("*"))
    found: dict[str, float] = {}
    with graphsim(served, state) as sim:
        config = work / "drivefeed.toml"
        config.write_text(SETTINGS.format(poll=poll_seconds, **sim))
        empty = work / "empty.toml"
        empty.write_text("log_json = true\n")
        first = Running(data, empty)
        found["ready_s"] = first.ready_s
        time.sleep(5)
        found["idle_uss_mib"], found["idle_rss_mib"] = first.memory()
        first.stop()
        second = Running(data, config)
        found["ready_again_s"] = second.ready_s
        wait_for(
            lambda: second.all_searchable(files), seconds=300, what="not all became searchable"
        )
        time.sleep(2)
        found["loaded_uss_mib"], found["loaded_rss_mib"] = second.memory()
        found["longest_stall_ms"] = (second.health() or {})["longest_stall_ms"]
        time.sleep(3)
        before, began = second.cpu_seconds(), time.monotonic()
        time.sleep(idle_seconds)
        after, seconds = second.cpu_seconds(), time.monotonic() - began
        shares = {name: 100 * (after[name] - before.get(name, 0)) / seconds for name in after}
        found["idle_cpu_percent"] = sum(shares.values())
        for name, share in shares.items():
            print(f"  {share:5.1f} %  {name}")
        found["idle_stall_ms"] = (second.health() or {})["longest_stall_ms"]
        second.stop()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--idle-seconds", type=float, default=20)
    parser.add_argument("--poll-seconds", type=float, default=60, help="60 is the default of 'up'")
    wanted = parser.parse_args()
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
          f"load {load:.1f} at the start")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="footprint-") as folder:
        found = asyncio.run(asyncio.to_thread(
            measure, Path(folder), wanted.idle_seconds, wanted.poll_seconds
        ))  # fmt: skip
    for name, value in found.items():
        bound = BOUNDS.get(name)
        mark = "" if bound is None else f"  (bound {bound:g}{'' if value < bound else ', MISSED'})"
        print(f"{name:<18} {value:8.1f}{mark}")
    print("footprint " + " ".join(f"{name}={value:.1f}" for name, value in found.items()))


if __name__ == "__main__":
    main()

"""A large drive: its first listing, ten thousand changes, ten changes; beside raw inserts.

Usage: python bench/drive.py [--items 20000] [--folders 100] [--databases sqlite,postgres]

graphsim serves a generated drive from a process of its own, over HTTP. Each database has a process
of its own too, in which the real parts follow the drive: the Graph source on Microsoft's SDK, the
runner, the stage ``discover`` and the catalog. Then the rows that they wrote are written once more
by the driver alone, on the same database. The last line of each part is for machines.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

HERE = Path(__file__).resolve().parent
# It measures a checkout, with the tests' Postgres.
sys.path[:0] = [str(HERE.parent / "src"), str(HERE.parent / "tests")]

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator


@contextlib.contextmanager
def graphsim(state: Path, items: int, folders: int, page: int) -> Iterator[dict[str, Any]]:
    """Serve a generated drive; yield the endpoints, with the process's id."""
    ready = state / "ready.json"
    process = subprocess.Popen(
        [sys.executable, "-m", "graphsim", "--bulk", f"{items}/{folders}", "--state", str(state),
         "--ready-file", str(ready), "--page-size", str(page)],
        env={**os.environ, "PYTHONPATH": str(HERE.parent / "src")},
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        while not ready.is_file():
            if time.monotonic() > deadline or process.poll() is not None:
                raise SystemExit("graphsim did not start")
            time.sleep(0.05)
        yield json.loads(ready.read_text()) | {"pid": process.pid}
    finally:
        process.terminate()
        process.wait()


async def follow(
    url: str,
    wanted: dict[str, Any],
    told: Callable[[int], None],
    raw: Callable[[], Awaitable[float]],
) -> dict[str, Any]:
    """Sync once, write the same once more raw, then sync after many changes and after ten."""
    from drive_parts.follow import POLICIES, Followed, change

    from drivefeed.catalog.engine import open_catalog
    from drivefeed.services.loop import spare_the_collector
    from drivefeed.system import SystemClock, SystemIds, no_checkpoint, take_short_turns

    # As the daemon does.
    take_short_turns()
    spare_the_collector()
    sim, me, server = wanted["sim"], psutil.Process(), psutil.Process(wanted["sim"]["pid"])
    catalog = await open_catalog(
        url, clock=SystemClock(), ids=SystemIds(), checkpoint=no_checkpoint
    )
    drive = await Followed.begin(catalog, sim, POLICIES[wanted["scope"]], told)
    ours, theirs = sum(me.cpu_times()[:2]), sum(server.cpu_times()[:2])
    first = await drive.sync()
    rows = await drive.count()
    # Some pages were fetched twice: what lies fetched when a run's minute is over is given up.
    found: dict[str, Any] = {"first_s": first, "items": rows["items"], "rows": rows}
    found["items_a_second"] = rows["items"] / first
    found["fetched"] = drive.source.items
    found["pages"] = drive.source.pages
    found["waited_for_graphsim_s"] = drive.source.waited
    found["cpu_s"] = sum(me.cpu_times()[:2]) - ours
    found["cpu_graphsim_s"] = sum(server.cpu_times()[:2]) - theirs
    found["resident_mib"] = drive.source.resident | {"at the end": me.memory_info().rss >> 20}
    found["raw_s"] = await raw()
    for count, seed in ((wanted["changes"], 1), (10, 2)):
        await change(sim, count, seed)
        found[f"{count}_changes_s"] = await drive.sync()
    await drive.source.aclose()
    await catalog.aclose()
    return found


def on_sqlite(wanted: dict[str, Any], told: Callable[[int], None]) -> dict[str, Any]:
    from drive_parts.raw import raw_sqlite

    with tempfile.TemporaryDirectory(prefix="bench-drive-") as folder:
        file = Path(folder, "catalog.db")
        raw = partial(asyncio.to_thread, raw_sqlite, file, Path(folder, "raw.db"), wanted["page"])
        return asyncio.run(follow(f"sqlite:///{file}", wanted, told, raw))


def on_postgres(wanted: dict[str, Any], told: Callable[[int], None]) -> dict[str, Any]:
    from drive_parts.raw import raw_postgres

    from support.postgres import running_postgres

    with running_postgres(autovacuum=True) as server:
        filled, empty = server.empty_database(), server.empty_database()
        raw = partial(raw_postgres, filled, empty, wanted["page"])
        return asyncio.run(follow(filled, wanted, told, raw))


def part(wanted: dict[str, Any]) -> None:
    """Measure one database; say how far it is on the way."""

    def told(count: int) -> None:
        sys.stdout.write(f"{count}\n")
        sys.stdout.flush()

    found = (on_sqlite if wanted["database"] == "sqlite" else on_postgres)(wanted, told)
    print(json.dumps(found))


def measured(wanted: dict[str, Any]) -> dict[str, Any]:
    """Run a part in a process of its own and show its progress."""
    process = subprocess.Popen(
        [sys.executable, __file__, "--part", json.dumps(wanted)],
        stdout=subprocess.PIPE, text=True, env=dict(os.environ),
    )  # fmt: skip
    assert process.stdout is not None
    last = "{}"
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeRemainingColumn(), transient=True) as progress:
        task = progress.add_task(wanted["database"], total=wanted["items"])
        for line in process.stdout:
            if line.strip().isdecimal():
                progress.update(task, completed=min(int(line), wanted["items"]))
            else:
                last = line
    if process.wait():
        raise SystemExit(f"the part for {wanted['database']} failed")
    found: dict[str, Any] = json.loads(last)
    found["raw_items_a_second"] = found["items"] / found["raw_s"]
    found["of_raw"] = found["items_a_second"] / found["raw_items_a_second"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=20_000)
    parser.add_argument("--folders", type=int, default=100)
    parser.add_argument("--page", type=int, default=1_000, help="items on a page, at most")
    parser.add_argument("--changes", type=int, default=1_000)
    parser.add_argument("--scope", choices=["few", "none", "all"], default="few")
    parser.add_argument("--databases", default="sqlite,postgres")
    parser.add_argument("--part", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.part:
        part(json.loads(asked.part))
        return
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
          f"load {os.getloadavg()[0]:.1f} at the start")  # fmt: skip
    for database in asked.databases.split(","):
        with (
            tempfile.TemporaryDirectory(prefix="bench-drive-sim-") as state,
            graphsim(Path(state), asked.items, asked.folders, asked.page) as sim,
        ):
            found = measured({"database": database, "sim": sim, **vars(asked)})
        for name, value in found.items():
            print(
                f"  {name:<24} {value:,.2f}"
                if isinstance(value, float)
                else f"  {name:<24} {value}"
            )
        print(json.dumps({"bench": "drive", "database": database, "scope": asked.scope, **found}))


if __name__ == "__main__":
    main()

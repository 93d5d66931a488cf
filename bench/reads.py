"""What a small read of the catalog costs, on aiosqlite's own connection and on the catalog's.

Usage: python bench/reads.py [--times 500] [--rounds 5]

Both read the same row of the same file through SQLAlchemy, each read in a transaction of its own;
they take turns, so that a busy machine is as busy for both. Processor time is that of all threads.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import sqlite3
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, column, event, select, table
from sqlalchemy.ext.asyncio import create_async_engine

from drivefeed.catalog.sqlite import SqliteDatabase, sqlite_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from sqlalchemy import Connection
    from sqlalchemy.ext.asyncio import AsyncEngine

FACTS = table("facts", column("name"), column("value"))
READ = select(FACTS.c.value).where(FACTS.c.name == bindparam("named"))


def plain(path: Path) -> AsyncEngine:
    """Return an engine as SQLAlchemy's documentation makes one, which begins transactions."""
    engine = create_async_engine(sqlite_url(path).replace("sqlite:", "sqlite+aiosqlite:", 1))

    def leave_it_to_us(connection: sqlite3.Connection, _: object) -> None:
        connection.isolation_level = None

    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")

    event.listen(engine.sync_engine, "connect", leave_it_to_us)
    event.listen(engine.sync_engine, "begin", begin)
    return engine


def reading(engine: AsyncEngine) -> Callable[[], Awaitable[None]]:
    """Return what reads the row once."""

    async def read() -> None:
        async with engine.connect() as connection, connection.begin():
            assert (await connection.execute(READ, {"named": "some"})).scalar_one() == "1"

    return read


async def cost(read: Callable[[], Awaitable[None]], times: int) -> float:
    """Return milliseconds of processor time for one read."""
    before = time.process_time()
    for _ in range(times):
        await read()
    return (time.process_time() - before) / times * 1000


async def compare(path: Path, *, times: int, rounds: int) -> dict[str, list[float]]:
    """Let both take turns; return the costs by name."""
    theirs, database = plain(path), SqliteDatabase(sqlite_url(path))
    each = {"aiosqlite's own": reading(theirs), "the catalog's": reading(database.engine)}
    found: dict[str, list[float]] = {name: [] for name in each}
    for read in each.values():
        await cost(read, times // 10)
    for _ in range(rounds):
        for name, read in each.items():
            found[name].append(await cost(read, times))
    await theirs.dispose()
    await database.aclose()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    wanted = parser.parse_args()
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
          f"load {os.getloadavg()[0]:.1f} at the start")  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="reads-") as folder:
        path = Path(folder) / "some.sqlite"
        made = sqlite3.connect(path)
        with made:
            made.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT)")
            made.execute("INSERT INTO facts VALUES ('some', '1')")
        made.close()
        found = asyncio.run(compare(path, times=wanted.times, rounds=wanted.rounds))
    for name, costs in found.items():
        print(f"{name:<16} {median(costs):6.2f} ms a read (of {len(costs)} rounds the median)")
    theirs, ours = (median(costs) for costs in found.values())
    print(f"reads theirs_ms={theirs:.2f} ours_ms={ours:.2f} ratio={ours / theirs:.2f}")


if __name__ == "__main__":
    main()

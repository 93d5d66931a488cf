"""The floor: the rows that a sync wrote, written once more by the driver alone.

The same rows, tables, indexes and page sizes, one transaction a page with the position beside it,
without SQLAlchemy, decisions, questions or Microsoft Graph. Only the writing is timed.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import closing
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from drivefeed.catalog.engine import migrate
from drivefeed.catalog.tables import (
    coverage,
    documents,
    import_events,
    imports,
    items,
    reminders,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_WRITTEN = (items, coverage, documents, imports, import_events, reminders)
_FIXED = ("orgs", "accounts", "drives", "connections")
_POSITION = "UPDATE drives SET pages_in_round = pages_in_round + 1, cursor = 'link'"


def _insert(table: Any, columns: list[str], marks: str) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    keys = [column.name for column in table.primary_key]
    text = f"INSERT INTO {table.name} ({names}) VALUES ({marks})"
    if table in {items, coverage}:
        changes = ", ".join(f'"{name}" = excluded."{name}"' for name in columns if name not in keys)
        text += f" ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {changes}"
    return text


def raw_sqlite(filled: Path, empty: Path, page: int) -> float:
    """Return the seconds that the rows of one catalog take to be written to an empty one."""
    migrate(f"sqlite:///{empty}")
    spent = 0.0
    with closing(sqlite3.connect(filled)) as source, closing(sqlite3.connect(empty)) as target:
        target.isolation_level = None
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "temp_store=MEMORY"):
            target.execute(f"PRAGMA {pragma}")
        for name in _FIXED:
            rows = source.execute(f"SELECT * FROM {name}").fetchall()
            target.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        target.execute("PRAGMA foreign_keys=ON")

        def pages(table: Any) -> Iterator[list[Any]]:
            rows = source.execute(f"SELECT * FROM {table.name} ORDER BY rowid")
            while found := rows.fetchmany(page):
                yield found

        statements = {}
        for table in _WRITTEN:
            names = [one[0] for one in source.execute(f"SELECT * FROM {table.name}").description]
            statements[table.name] = _insert(table, names, ", ".join("?" * len(names)))
        for found in zip_longest(*map(pages, _WRITTEN)):
            began = time.perf_counter()
            target.execute("BEGIN IMMEDIATE")
            for table, rows in zip(_WRITTEN, found, strict=True):
                if rows:
                    target.executemany(statements[table.name], rows)
            target.execute(_POSITION)
            target.execute("COMMIT")
            spent += time.perf_counter() - began
    return spent


async def raw_postgres(filled: str, empty: str, page: int) -> float:
    """Return the seconds that the rows of one database take to be written to an empty one."""
    import asyncpg

    await asyncio.to_thread(migrate, empty)
    source, target = await asyncpg.connect(filled), await asyncpg.connect(empty)
    spent = 0.0
    for name in _FIXED:
        rows = [tuple(row) for row in await source.fetch(f"SELECT * FROM {name}")]
        marks = ", ".join(f"${number}" for number in range(1, len(rows[0]) + 1))
        await target.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    async with source.transaction():
        cursors, statements = [], []
        for table in _WRITTEN:
            asked = await source.prepare(f"SELECT * FROM {table.name}")
            names = [one.name for one in asked.get_attributes()]
            marks = ", ".join(f"${number}" for number in range(1, len(names) + 1))
            statements.append(await target.prepare(_insert(table, names, marks)))
            cursors.append(await asked.cursor())
        while any(found := [await one.fetch(page) for one in cursors]):
            pages = [[tuple(row) for row in rows] for rows in found]
            began = time.perf_counter()
            async with target.transaction():
                for statement, rows in zip(statements, pages, strict=True):
                    if rows:
                        await statement.executemany(rows)
                await target.execute(_POSITION)
            spent += time.perf_counter() - began
    await source.close()
    await target.close()
    return spent

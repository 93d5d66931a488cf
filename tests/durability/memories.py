"""A catalog as a test looks into it, past drivefeed: a SQLite file, or a database of a Postgres.

What is asked is SQL that both understand, with ``?`` where a value stands.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol

import asyncpg

from support.evidence import rows_in, unrest_in
from support.postgres_daemon import SECRET_KEY, unrest_at

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.settings import Settings
    from durability.lives import Run
    from support.postgres import PostgresServer


class NoCatalogError(Exception):
    """There is no catalog yet, or nobody can look into it just now."""


class Memory(Protocol):
    """Where the catalog of one run is."""

    settings: str
    """Lines for the settings of its lives."""

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        """Read.

        Raises:
            NoCatalogError: there is none yet.
        """
        ...

    def unrest(self, files: int) -> dict[str, int]:
        """Count what is still to do; empty at rest."""
        ...

    def back_up(self, run: Run) -> None:
        """Copy it while nothing runs."""
        ...

    def restore(self, run: Run) -> None:
        """Put the copy in its place, and have drivefeed know of it."""
        ...


class SqliteMemory:
    """A file in the data folder."""

    settings = ""

    def __init__(self, data: Path) -> None:
        self._data = data

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        try:
            return rows_in(self._data, sql, *values)
        except sqlite3.OperationalError as error:
            raise NoCatalogError(str(error)) from error

    def unrest(self, files: int) -> dict[str, int]:
        return unrest_in(self._data, files)

    def back_up(self, run: Run) -> None:
        run.does("backup", str(run.home / "backup.sqlite"))

    def restore(self, run: Run) -> None:
        run.does("restore", str(run.home / "backup.sqlite"))
        # As for a database that was put back by its own means.
        run.does("restore", "--done")


class PostgresMemory:
    """A database of its own on a server."""

    def __init__(self, server: PostgresServer, data: Path) -> None:
        self._server = server
        self._url = server.new_database()
        key = data / "key of the run"
        key.touch(0o600)
        key.write_text(SECRET_KEY, encoding="ascii")
        # A key is made beside a catalog that is a file, and beside no other.
        self.settings = (
            f"database_url = {json.dumps(self._url)}\nsecret_key_file = {json.dumps(str(key))}"
        )

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        return rows_at(self._url, sql, *values)

    def unrest(self, files: int) -> dict[str, int]:
        return unrest_at(self._url, files)

    def back_up(self, run: Run) -> None:
        run.does("backup", str(run.home / "backup.dump"))
        self._copy(self._name, f"{self._name}_backup")

    def restore(self, run: Run) -> None:
        self._server.drop(self._url)
        self._copy(f"{self._name}_backup", self._name)
        run.does("restore", "--done")

    @property
    def _name(self) -> str:
        return self._url.rpartition("/")[2]

    def _copy(self, old: str, new: str) -> None:
        """Postgres waits for those who are still connected, up to five seconds."""
        self._server.execute(f"CREATE DATABASE {new} TEMPLATE {old}")


def rows_at(url: str, sql: str, *values: Any) -> list[dict[str, Any]]:
    """Ask a Postgres, or tell it; also where a loop runs in this thread."""

    async def ask() -> list[dict[str, Any]]:
        connection = await asyncpg.connect(url, timeout=20)
        try:
            return [dict(row) for row in await connection.fetch(_numbered(sql), *values)]
        finally:
            await connection.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, ask()).result()


def _numbered(sql: str) -> str:
    """Return a statement with ``$1``, ``$2`` … for each ``?``."""
    first, *others = sql.split("?")
    return first + "".join(f"${number}{part}" for number, part in enumerate(others, start=1))


def asked_of(settings: Settings, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """Ask or change the catalog of a life itself, past drivefeed."""
    url = settings.catalog_url
    if not url.startswith("sqlite"):
        return [tuple(row.values()) for row in rows_at(url, sql, *values)]
    with closing(sqlite3.connect(settings.data_dir / "catalog.sqlite")) as catalog, catalog:
        return catalog.execute(sql, values).fetchall()

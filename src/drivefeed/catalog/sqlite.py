"""SQLite as the catalog's database: a file, one writer at a time.

SQLite fails a deferred transaction at once when it read before another writer committed, whatever
the busy timeout, so every writing transaction begins IMMEDIATE.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from sqlalchemy import create_engine, event, make_url
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from drivefeed.catalog.sqlite_connection import OneJourneyConnection
from drivefeed.catalog.sqlite_errors import catalog_down

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from sqlalchemy import Connection
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.ext.asyncio import AsyncEngine
    from sqlalchemy.pool import ConnectionPoolEntry

    from drivefeed.domain.errors import PartDown

_BUSY_TIMEOUT_MS = 20_000
_CHECKPOINT_PAGES = 4_000
"""Pages of 4 KiB in the WAL before they are written to their places. With SQLite's 1,000, pages of
the indexes by random ids are written there again and again: a row of a large listing took twice the
time, measured on 600,000 rows."""
_PRAGMAS = (
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
    f"busy_timeout={_BUSY_TIMEOUT_MS}",
    "temp_store=MEMORY",
    f"wal_autocheckpoint={_CHECKPOINT_PAGES}",
)
_MIGRATION_SECONDS = 120.0
"""How long to wait for another process that migrates."""
_LOOK_SECONDS = 0.02


class SqliteDatabase:
    """One file; the writers of this process wait for each other in the order in which they came.

    SQLite lets one writer in at a time and makes the others sleep and look again, for up to
    100 ms a time and in no order; waiting here is fair, and leaves connections to readers.
    """

    def __init__(self, url: str) -> None:
        path = make_url(url).database
        assert path is not None

        async def connect() -> OneJourneyConnection:
            connection = OneJourneyConnection(partial(_open, path))
            await connection
            return connection

        self.engine: AsyncEngine = create_async_engine(
            url.replace("sqlite:", "sqlite+aiosqlite:", 1),
            async_creator=connect,
            pool_size=8,
            max_overflow=0,
            # The last one that was given back has its pages and statements at hand.
            pool_use_lifo=True,
            hide_parameters=True,
        )
        event.listen(self.engine.sync_engine, "begin", _begin)
        self._turn = asyncio.Lock()

    @asynccontextmanager
    async def writer(self, *, beside: bool) -> AsyncIterator[AsyncConnection]:
        """Yield a connection that may write; every writer is alone, whatever ``beside`` says."""
        del beside
        async with self._turn, self.engine.connect() as connection:
            await connection.execution_options(drivefeed_writes=True)
            async with connection.begin():
                yield connection

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[AsyncConnection]:
        """Yield a connection with one consistent view."""
        async with self.engine.connect() as connection, connection.begin():
            yield connection

    def translated(self, error: SQLAlchemyError, *, writes: bool = True) -> PartDown | None:
        """Return what an error means for the rest of the house, or None for a defect."""
        del writes
        return catalog_down(error)

    async def aclose(self) -> None:
        """Close all connections."""
        await self.engine.dispose()


def sqlite_url(path: Path) -> str:
    """Return SQLAlchemy's URL for a SQLite file, without a driver."""
    return f"sqlite:///{path}"


def alone_to_migrate(
    url: str, is_done: Callable[[Connection], bool], migrate: Callable[[Connection], None]
) -> None:
    """Run migrations while no other process does; the others wait, and find it done.

    Args:
        is_done: asked before anything is locked, since most starts have nothing to migrate.
        migrate: has to ask again; it runs in one transaction.
    """
    engine = create_engine(url, connect_args={"timeout": _MIGRATION_SECONDS})
    event.listen(engine, "connect", _begin_ourselves)
    event.listen(engine, "begin", _begin_to_migrate)
    try:
        with engine.connect() as connection:
            with connection.begin():
                if is_done(connection):
                    return
            connection.execution_options(drivefeed_writes=True)
            with connection.begin():
                migrate(connection)
    finally:
        engine.dispose()


def _begin_ourselves(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    """Leave transactions to us: Python's driver begins none for a change of the schema.

    SQLite refuses the change to WAL at once while somebody else has the file open for it, whatever
    the timeout, so several that start at once on a new file wait for each other here.
    """
    connection.isolation_level = None
    cursor = connection.cursor()
    until = time.monotonic() + _MIGRATION_SECONDS
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > until:
                raise
            time.sleep(_LOOK_SECONDS)
    cursor.close()


def _open(path: str) -> sqlite3.Connection:
    """Open the file that migrating made or found; one that was deleted since is not made anew."""
    connection = sqlite3.connect(
        f"file:{quote(path)}?mode=rw", uri=True, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}")
    except BaseException:
        connection.close()
        raise
    return connection


def _begin(connection: Connection) -> None:
    if connection.get_execution_options().get("drivefeed_writes", False):
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        cast("OneJourneyConnection", connection.connection.driver_connection).begin_to_read()


def _begin_to_migrate(connection: Connection) -> None:
    writes = connection.get_execution_options().get("drivefeed_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

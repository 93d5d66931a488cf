"""The catalog's connection to its database: transactions, migrations, and the clock it stamps with.

SQLite fails a deferred transaction at once when it read before another writer committed, whatever
the busy timeout, so every writing transaction begins IMMEDIATE.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager, nullcontext
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from drivefeed.domain.errors import NeedsAttention, Part, PartDown
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from sqlalchemy import Connection
    from sqlalchemy.engine.interfaces import DBAPIConnection
    from sqlalchemy.pool import ConnectionPoolEntry

    from drivefeed.ports import Checkpoint, Clock, Ids

_BUSY_TIMEOUT_MS = 20_000
_FULL = "disk is full"
_QUIET = frozenset({"claim", "heartbeat", "relay", "renew", "progress", "lease", "notices"})


class Catalog:
    """The database that remembers. Rooms of SQL take it as their first argument.

    Attributes:
        clock: where instants come from.
        ids: where fresh ids come from.
        changed: set after commits that may have made something due.
    """

    def __init__(
        self, engine: AsyncEngine, *, clock: Clock, ids: Ids, checkpoint: Checkpoint
    ) -> None:
        self._engine = engine
        self.clock = clock
        self.ids = ids
        self.checkpoint = checkpoint
        self.changed = asyncio.Event()
        self._turn = _turns(engine)

    @asynccontextmanager
    async def write(self, name: str = "catalog") -> AsyncIterator[AsyncConnection]:
        """One writing transaction, committed at the end of the block.

        Args:
            name: names the checkpoints around the commit.

        Raises:
            PartDown: the disk is full; nothing of the transaction was written.
        """
        try:
            async with self._turn, self._engine.connect() as connection:
                await connection.execution_options(
                    drivefeed_writes=True, drivefeed_now=self.clock.now
                )
                async with connection.begin():
                    yield connection
                    self.checkpoint(f"{name}.commit.before")
                self.checkpoint(f"{name}.commit.after")
        except DBAPIError as error:
            if _FULL not in str(error.orig):
                raise
            raise PartDown(
                "The disk of the catalog is full, so nothing can be recorded and work waits. Make "
                "room; it goes on by itself.",
                part=Part.CATALOG,
            ) from error
        if name not in _QUIET:
            self.changed.set()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """One consistent view of the database."""
        async with self._engine.connect() as connection, connection.begin():
            yield connection

    async def aclose(self) -> None:
        """Close all connections."""
        await self._engine.dispose()


def now_of(connection: AsyncConnection) -> int:
    """Return the time of a transaction of :meth:`Catalog.write`, by the catalog's clock."""
    assert connection.sync_connection is not None
    now: int = connection.sync_connection.get_execution_options()["drivefeed_now"]()
    return now


def _turns(engine: AsyncEngine) -> AbstractAsyncContextManager[Any]:
    """Return what writers of this process wait for, in the order in which they came.

    SQLite lets one writer in at a time and makes the others sleep and look again, for up to
    100 ms a time and in no order; waiting here is fair, and leaves connections to readers.
    """
    return asyncio.Lock() if engine.dialect.name == "sqlite" else nullcontext()


def sqlite_url(path: Path) -> str:
    """Return SQLAlchemy's URL for a SQLite file, without a driver."""
    return f"sqlite:///{path}"


async def open_catalog(url: str, *, clock: Clock, ids: Ids, checkpoint: Checkpoint) -> Catalog:
    """Open the database, bring its schema up to date, and return the catalog."""
    await asyncio.to_thread(migrate, url)
    engine = create_async_engine(
        url.replace("sqlite:", "sqlite+aiosqlite:", 1), pool_size=8, max_overflow=0
    )
    event.listen(engine.sync_engine, "connect", _prepare)
    event.listen(engine.sync_engine, "begin", _begin)
    return Catalog(engine, clock=clock, ids=ids, checkpoint=checkpoint)


def _prepare(connection: DBAPIConnection, _entry: ConnectionPoolEntry) -> None:
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        "journal_mode=WAL",
        "synchronous=FULL",
        "foreign_keys=ON",
        f"busy_timeout={_BUSY_TIMEOUT_MS}",
        "temp_store=MEMORY",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: Any) -> None:
    writes = connection.get_execution_options().get("drivefeed_writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def migrate(url: str, *, to: str = "head") -> None:
    """Run all migrations that the database has not seen; safe to call at every start.

    Args:
        to: the last one to run, for tests of what an older version left behind.

    Raises:
        NeedsAttention: a version of drivefeed that knows more migrations made the catalog.
    """
    engine = create_engine(url)
    try:
        with engine.begin() as connection:
            if not _is_current(connection):
                # Alembic takes longer to load than most commands take to answer.
                from alembic import command
                from alembic.config import Config

                config = Config()
                config.set_main_option("script_location", "drivefeed:catalog/migrations")
                config.attributes["connection"] = connection
                command.upgrade(config, to)
    finally:
        engine.dispose()


def _is_current(connection: Connection) -> bool:
    """Whether the newest migration was run; their files begin with their revisions, in order."""
    if not inspect(connection).has_table("alembic_version"):
        return False
    rows = connection.execute(text("SELECT version_num FROM alembic_version"))
    found = [str(version) for version in rows.scalars()]
    known = _migrations()
    for version in found:
        if version not in known:
            raise NeedsAttention(
                f"The catalog was made by a newer version of drivefeed (migration {version}; this "
                f"one knows {known[-1]}). Run that version, or restore the catalog from before it.",
                reason=Reason.MISCONFIGURED,
            )
    return found == known[-1:]


def newest_migration() -> str:
    """Return the revision of the newest migration that this version knows."""
    return _migrations()[-1]


def _migrations() -> list[str]:
    names = [one.name for one in files("drivefeed.catalog.migrations.versions").iterdir()]
    return sorted(name[:4] for name in names if re.match(r"\d{4}_", name))

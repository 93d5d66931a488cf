"""The catalog's connection to its database: transactions, and the clock it stamps with."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnectionFree

from drivefeed.catalog.database import PostgresLimits, is_postgres
from drivefeed.catalog.database_clock import DatabaseClock
from drivefeed.catalog.endings import OPTION as ENDINGS
from drivefeed.catalog.endings import finish_all
from drivefeed.catalog.migrating import migrate, newest_migration
from drivefeed.catalog.sqlite import SqliteDatabase, sqlite_url

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.database import Database
    from drivefeed.ports import Checkpoint, Clock, Ids

__all__ = [
    "Catalog",
    "PostgresLimits",
    "is_postgres",
    "migrate",
    "newest_migration",
    "now_of",
    "open_catalog",
    "sqlite_url",
]

_QUIET = frozenset(
    {
        *("claim", "heartbeat", "renew", "index_job.progress", "relay.sent"),
        *("lease.take", "lease.release"),
        *("notice.claim", "notice.delivered", "notice.failed", "notice.drop"),
        *("notice.reconcile", "notice.forget"),
    }
)
"""Commits that make nothing due."""


class Catalog:
    """The database that remembers. Rooms of SQL take it as their first argument.

    Attributes:
        clock: where instants come from.
        ids: where fresh ids come from.
        changed: set after commits that may have made something due.
    """

    def __init__(
        self, database: Database, *, clock: Clock, ids: Ids, checkpoint: Checkpoint
    ) -> None:
        self._database = database
        self._engine = database.engine
        self.clock = clock
        self.ids = ids
        self.checkpoint = checkpoint
        self.changed = asyncio.Event()

    @asynccontextmanager
    async def write(
        self, name: str = "catalog", *, beside: bool = False
    ) -> AsyncIterator[AsyncConnection]:
        """One writing transaction, committed at the end of the block; it never has to be repeated.

        Args:
            name: names the checkpoints around the commit; one of
                :data:`drivefeed.domain.checkpoints.COMMITS`.
            beside: others may write at the same time, because this one locks every row by which
                it decides (see :mod:`drivefeed.catalog.postgres`). Without it, it is alone.

        Raises:
            PartDown: the database cannot be written just now; nothing was, unless the connection
                was lost during the commit.
        """
        try:
            async with self._database.writer(beside=beside) as connection:
                await connection.execution_options(drivefeed_now=self.clock.now, **{ENDINGS: {}})
                yield connection
                await finish_all(connection)
                self.checkpoint(f"{name}.commit.before")
            self.checkpoint(f"{name}.commit.after")
        except (DBAPIError, NoConnectionFree) as error:
            raise self._database.translated(error) or error from error
        if name not in _QUIET:
            self.changed.set()

    @asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """One consistent view of the database.

        Raises:
            PartDown: the database does not answer.
        """
        try:
            async with self._database.reader() as connection:
                yield connection
        except (DBAPIError, NoConnectionFree) as error:
            raise self._database.translated(error, writes=False) or error from error

    async def aclose(self) -> None:
        """Close all connections."""
        await self._database.aclose()


def now_of(connection: AsyncConnection) -> int:
    """Return the time of a transaction of :meth:`Catalog.write`, by the catalog's clock."""
    assert connection.sync_connection is not None
    now: int = connection.sync_connection.get_execution_options()["drivefeed_now"]()
    return now


async def open_catalog(
    url: str,
    *,
    clock: Clock,
    ids: Ids,
    checkpoint: Checkpoint,
    limits: PostgresLimits | None = None,
    follows_database: bool = False,
) -> Catalog:
    """Open the database, bring its schema up to date, and return the catalog.

    Args:
        limits: what this process may use of a Postgres.
        follows_database: whether instants come from the clock of a Postgres, because other
            machines work on it as well.

    Raises:
        NeedsAttention: it was migrated by a newer drivefeed, or its URL cannot be used.
        PartDown: it does not answer, or refuses us.
    """
    await asyncio.to_thread(migrate, url)
    if not is_postgres(url):
        return Catalog(SqliteDatabase(url), clock=clock, ids=ids, checkpoint=checkpoint)
    # Its driver takes a tenth of a second to load.
    from drivefeed.catalog.postgres import PostgresDatabase

    followed = DatabaseClock(clock) if follows_database else None
    database = PostgresDatabase(url, limits or PostgresLimits(), clock=followed)
    return Catalog(database, clock=followed or clock, ids=ids, checkpoint=checkpoint)

"""Postgres as the catalog's database: many writers, in many processes.

What SQLite gives by having one writer, Postgres gives by locks that are taken before anything is
read, so that no transaction has to be run again:

* A transaction that says nothing about itself is *alone*: it holds the catalog's lock, and every
  other writer waits. That is SQLite's meaning, and right for all that is rare.
* One that is written *beside* others shares that lock. It locks the rows by which it decides
  (``FOR UPDATE``: the drive, then documents by id, then reminders) and reads READ COMMITTED, so
  that after the wait it sees what the one before it committed.

Both locks end with their transaction, and nothing else outlives one: statements have no names, and
settings are those of the transaction. So a pgbouncer that pools transactions may stand between.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import asyncpg
from sqlalchemy import event, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from drivefeed.catalog.database import PostgresLimits
from drivefeed.catalog.postgres_errors import UNREACHABLE, timed_out, translated, unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from sqlalchemy import Connection
    from sqlalchemy.engine import ExceptionContext
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.ext.asyncio import AsyncEngine

    from drivefeed.catalog.database_clock import DatabaseClock
    from drivefeed.domain.errors import PartDown

CATALOG_LOCK = 0x6472_6976_6566_6565
"""The advisory lock of writers; the next number is that of migrations."""
MIGRATION_LOCK = CATALOG_LOCK + 1

_GRACE_SECONDS = 5.0
_KEPT_STATEMENTS = 200
_A_DAY = 86_400.0
"""A migration may take as long as it takes."""
_LOCK_MIGRATIONS = text("SELECT pg_advisory_xact_lock(:key)")

# The limit of waiting for a lock holds from its first line on, that of a statement from the next.
_BEGIN_WRITING = """
SELECT set_config('lock_timeout', :statement_ms, true),
       set_config('statement_timeout', :statement_ms, true),
       set_config('idle_in_transaction_session_timeout', :idle_ms, true),
       {lock}(:key),
       CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
"""
_ALONE = text(_BEGIN_WRITING.format(lock="pg_advisory_xact_lock"))
_BESIDE = text(_BEGIN_WRITING.format(lock="pg_advisory_xact_lock_shared"))
_BEGIN_READING = text(
    """
SELECT set_config('statement_timeout', :statement_ms, true),
       set_config('idle_in_transaction_session_timeout', :idle_ms, true),
       CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)
"""
)


class PostgresDatabase:
    """A pool of connections, and what their transactions begin with.

    Args:
        url: as ``libpq`` takes it, with its parameters for TLS (``sslmode``, ``sslrootcert`` …).
        clock: told the database's time by every writing transaction; None to tell nobody.
    """

    def __init__(
        self, url: str, limits: PostgresLimits, *, clock: DatabaseClock | None = None
    ) -> None:
        self.engine = _engine(url, limits)
        event.listen(self.engine.sync_engine, "before_cursor_execute", _without_nul, retval=True)
        event.listen(self.engine.sync_engine, "handle_error", _without_answer)
        self._reading = self.engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self._limits = {
            "statement_ms": str(round(limits.statement_seconds * 1000)),
            "idle_ms": str(round(limits.idle_seconds * 1000)),
        }
        self._clock = clock

    @asynccontextmanager
    async def writer(self, *, beside: bool) -> AsyncIterator[AsyncConnection]:
        """Yield a connection that may write, once the catalog's lock is held or shared.

        Raises:
            PartDown: the database does not answer, or refuses us.
        """
        begin, values = (_BESIDE if beside else _ALONE), {**self._limits, "key": CATALOG_LOCK}
        connection = await self._open(self.engine, begin, values)
        async with _transaction_of(connection):
            yield connection

    @asynccontextmanager
    async def reader(self) -> AsyncIterator[AsyncConnection]:
        """Yield a connection with one consistent view.

        Raises:
            PartDown: the database does not answer, or refuses us.
        """
        connection = await self._open(self._reading, _BEGIN_READING, self._limits)
        async with _transaction_of(connection):
            yield connection

    async def _open(
        self, engine: AsyncEngine, begin: Any, values: dict[str, Any]
    ) -> AsyncConnection:
        """Return a connection in a transaction that has begun.

        A connection of the pool may have been cut since it was used; nothing was done on it yet,
        so another one is tried, and when one is found dead the pool drops all that are as old.
        """
        for is_last in (False, True):
            try:
                connection = await engine.connect()
            except UNREACHABLE as error:
                raise unreachable(error) from error
            try:
                asked = self._clock.own.now() if self._clock else 0
                row = (await connection.execute(begin, values)).one()
            except BaseException as error:
                await asyncio.shield(connection.close())
                was_cut = isinstance(error, DBAPIError) and error.connection_invalidated
                if is_last or not was_cut:
                    raise
            else:
                if self._clock is not None:
                    self._clock.told(int(row[-1]), asked_at=asked)
                return connection
        raise AssertionError

    def translated(self, error: SQLAlchemyError, *, writes: bool = True) -> PartDown | None:
        """Return what an error means for the rest of the house, or None for a defect."""
        return translated(error, writes=writes)

    async def aclose(self) -> None:
        """Close all connections."""
        await self.engine.dispose()


@asynccontextmanager
async def _transaction_of(connection: AsyncConnection) -> AsyncIterator[None]:
    """Commit at the end of the block what was begun on a connection, and give it back."""
    try:
        yield
        await connection.commit()
    finally:
        # Closing rolls back what was not committed; whoever is cancelled waits for that.
        await asyncio.shield(connection.close())


async def alone_to_migrate(
    url: str, is_done: Callable[[Connection], bool], migrate: Callable[[Connection], None]
) -> None:
    """Run migrations while no other process does; the others wait, and find it done.

    Raises:
        NeedsAttention: the URL cannot be used.
        PartDown: the database does not answer, or refuses us.
    """
    database = PostgresDatabase(url, PostgresLimits(connections=1, statement_seconds=_A_DAY))
    try:
        async with database.engine.connect() as connection:
            if await connection.run_sync(is_done):
                return
            await connection.execute(_LOCK_MIGRATIONS, {"key": MIGRATION_LOCK})
            await connection.run_sync(migrate)
            await connection.commit()
    except DBAPIError as error:
        raise translated(error) or error from error
    except UNREACHABLE as error:
        raise unreachable(error) from error
    finally:
        await database.aclose()


def _without_answer(context: ExceptionContext) -> PartDown | None:
    """Put into words that nothing came back; the driver raises what any timeout would.

    The connection is given up: rolling back on it would wait as long once more. The others of the
    pool may be well.

    Returns:
        What is raised instead of a TimeoutError.
    """
    if not isinstance(context.original_exception, TimeoutError):
        return None
    context.is_disconnect = True
    context.invalidate_pool_on_disconnect = False
    return timed_out(commits=context.statement is None)


def _without_nul(
    _connection: Any,
    _cursor: Any,
    statement: str,
    parameters: Any,
    _context: Any,
    executemany: bool,  # noqa: FBT001 - SQLAlchemy calls it so
) -> tuple[str, Any]:
    """Leave NUL out of text: Postgres takes none, and messages about broken files may hold some."""
    if executemany:
        return statement, [_clean(one) for one in parameters]
    return statement, _clean(parameters)


def _clean(values: Any) -> Any:
    """Return what NUL was taken out of: a row of values, or of columns of many rows."""
    texts = [one for one in values if isinstance(one, str)]
    if "\0" in "".join(texts) or any(isinstance(one, list) for one in values):
        return type(values)(map(_cleaned, values))
    return values


def _cleaned(one: Any) -> Any:
    if isinstance(one, list):
        return _clean(one)
    return one.replace("\0", "") if isinstance(one, str) else one


def _engine(url: str, limits: PostgresLimits) -> AsyncEngine:
    # Without a cache the driver gives statements no names, and the next one takes their place.
    kept = _KEPT_STATEMENTS if limits.prepared_statements else 0

    async def connect(**_options: Any) -> Any:
        return await asyncpg.connect(
            url.replace("postgres:", "postgresql:", 1),
            timeout=limits.connect_seconds,
            # The database ends a statement first; this is for one that does not answer.
            command_timeout=limits.statement_seconds + _GRACE_SECONDS,
            statement_cache_size=kept,
        )

    return create_async_engine(
        # The real URL goes to the driver alone, which knows all parameters; this one is printed.
        "postgresql+asyncpg://",
        async_creator=connect,
        isolation_level="READ COMMITTED",
        hide_parameters=True,
        pool_size=limits.connections,
        max_overflow=0,
        pool_timeout=limits.connect_seconds,
        pool_use_lifo=True,
        connect_args={"prepared_statement_cache_size": kept},
    )

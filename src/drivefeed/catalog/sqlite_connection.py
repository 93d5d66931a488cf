"""A connection to SQLite whose statements take one journey each to the thread that runs them.

aiosqlite makes a journey for each of: cursor, execute, fetch, close; and every journey wakes a
thread and then the event loop, which takes far longer than most statements do (bench/reads.py).
"""

from __future__ import annotations

import sqlite3
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import aiosqlite

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence

_Found = TypeVar("_Found")


class OneJourneyConnection(aiosqlite.Connection):
    """What SQLAlchemy's adapter of aiosqlite asks for, with all rows of a statement at once.

    Nothing of the catalog reads rows in pieces: a statement that may find many has a limit.
    """

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, iter_chunk_size=64)
        # A process that ends does not wait for a statement (SQLAlchemy does so as well).
        self._thread.daemon = True
        self._is_to_begin = False
        self._only_reads = False
        # Counted by one thread each, since adding to a number is not safe between threads.
        self._sent = 0
        self._done = 0
        self._sent_at_end = 0
        self._failure: sqlite3.Error | None = None
        self._is_stopping = False

    def stop(self) -> asyncio.Future[Any] | None:
        """End the thread; a second call has nothing to wait for.

        SQLAlchemy ends a connection by force while it is being closed, where a task is cancelled.
        What is asked of the thread after its end would be waited for without one.
        """
        if self._is_stopping:
            return None
        self._is_stopping = True
        return super().stop()

    async def cursor(self) -> Cursor:  # type: ignore[override]
        """Return a cursor; it costs nothing."""
        return Cursor(self)

    def begin_to_read(self) -> None:
        """Begin a transaction that only reads.

        It takes its view with its first statement anyway, so it begins on the same journey.
        """
        self._is_to_begin = self._only_reads = True

    async def commit(self) -> None:
        """End the transaction."""
        await self._end(sqlite3.Connection.commit)

    async def rollback(self) -> None:
        """Take the transaction back; there may be none."""
        await self._end(sqlite3.Connection.rollback)

    async def run(self, do: Callable[[sqlite3.Connection], _Found]) -> _Found:
        """Run something in the connection's thread, after all that was sent before.

        Raises:
            sqlite3.Error: it failed, or what was sent before and not waited for did.
        """
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure
        is_to_begin, self._is_to_begin = self._is_to_begin, False

        def journey() -> _Found:
            try:
                if is_to_begin:
                    self._conn.execute("BEGIN")
                return do(self._conn)
            finally:
                self._done += 1

        self._sent += 1
        found: _Found = await self._execute(journey)  # type: ignore[no-untyped-call]
        return found

    async def _end(self, end: Callable[[sqlite3.Connection], None]) -> None:
        only_reads, self._only_reads = self._only_reads, False
        if not self._has_transaction():
            return
        if only_reads:
            self._send(end)
        else:
            await self.run(end)
        self._sent_at_end = self._sent

    def _has_transaction(self) -> bool:
        is_to_begin, self._is_to_begin = self._is_to_begin, False
        if is_to_begin:
            return False
        if self._sent == self._sent_at_end:
            return False
        # A statement whose caller was cancelled may be under way, and what it began is not seen.
        return self._sent != self._done or self.in_transaction

    def _send(self, end: Callable[[sqlite3.Connection], None]) -> None:
        """Have what only read end, without waiting: the next journey comes after it anyway."""

        def journey() -> None:
            try:
                end(self._conn)
            except sqlite3.Error as error:
                self._failure = error
            finally:
                self._done += 1

        self._sent += 1
        self._tx.put_nowait((None, journey))


_ROWS_A_STATEMENT: Final = (250, 25, 5, 1)
"""Each has a text of its own, which SQLite reads once in the life of a connection. No table has
forty columns, and a statement takes 32,766 values (sqlite.org/limits.html)."""


class _Outcome(NamedTuple):
    description: Any
    lastrowid: int | None
    rowcount: int
    rows: list[Any]


class Cursor:
    """One statement and what it found, as of DB-API 2.0 (PEP 249) with coroutines."""

    def __init__(self, connection: OneJourneyConnection) -> None:
        self._connection = connection
        self._outcome = _Outcome(None, None, -1, [])

    @property
    def description(self) -> Any:
        """The columns of what was found; None after a statement that finds nothing."""
        return self._outcome.description

    @property
    def lastrowid(self) -> int | None:
        """The row that was written last."""
        return self._outcome.lastrowid

    @property
    def rowcount(self) -> int:
        """How many rows were written."""
        return self._outcome.rowcount

    async def execute(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run a statement, and keep all its rows."""
        self._outcome = await self._connection.run(
            lambda connection: _outcome(connection.execute(sql, parameters))
        )

    async def executemany(self, sql: str, rows: Sequence[Sequence[Any]]) -> None:
        """Run a statement for each row of values."""
        self._outcome = await self._connection.run(
            lambda connection: _outcome_of_many(connection, sql, rows)
        )

    async def fetchall(self) -> Sequence[Any]:
        """Return all rows."""
        return self._outcome.rows

    async def close(self) -> None:
        """Nothing is open."""


def _outcome(cursor: sqlite3.Cursor) -> _Outcome:
    rows = cursor.fetchall() if cursor.description else []
    found = _Outcome(cursor.description, cursor.lastrowid, cursor.rowcount, rows)
    cursor.close()
    return found


def _outcome_of_many(
    connection: sqlite3.Connection, sql: str, rows: Sequence[Sequence[Any]]
) -> _Outcome:
    """Insert many rows by few statements, where a statement takes nothing but their values.

    The driver gives up the interpreter for each row and waits for it again; while the event loop
    computes, each wait is one of its turns. Measured with 40,000 rows of twenty values beside a
    thread that only computes: 370 µs a row with ``executemany``, 23 µs with 250 rows a statement;
    alone 19 and 17 µs.
    """
    texts = _of_many_rows(sql, len(rows[0])) if len(rows) > 1 else None
    if texts is None:
        return _outcome(connection.executemany(sql, rows))
    written = done = 0
    while done < len(rows):
        count = next(one for one in texts if one <= len(rows) - done)
        values = tuple(chain.from_iterable(rows[done : done + count]))
        written += connection.execute(texts[count], values).rowcount
        done += count
    return _Outcome(None, None, written, [])


@lru_cache(maxsize=64)
def _of_many_rows(sql: str, width: int) -> dict[int, str] | None:
    """Return an ``INSERT`` of one row as those of many, by their number, the largest first.

    Returns:
        None where it is anything else.
    """
    row = f"({', '.join('?' * width)})"
    before, values, after = sql.partition(f" VALUES {row}")
    if not values or "?" in before or "?" in after or not before.startswith("INSERT"):
        return None
    return {
        count: f"{before}{values}{f', {row}' * (count - 1)}{after}" for count in _ROWS_A_STATEMENT
    }

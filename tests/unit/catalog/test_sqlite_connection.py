"""A connection whose statements take one journey each to the thread that runs them."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.catalog.sqlite_connection import OneJourneyConnection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

A_WHILE = """
    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 40000)
    SELECT max(n) FROM numbers
"""


class Counting(OneJourneyConnection):
    """Counts journeys that somebody waits for."""

    journeys = 0

    async def _execute(self, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.journeys += 1
        return await super()._execute(fn, *args, **kwargs)  # type: ignore[no-untyped-call]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "some.sqlite"
    with sqlite3.connect(found) as made:
        made.execute("PRAGMA journal_mode=WAL")
        made.execute("CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT)")
        made.executemany("INSERT INTO facts VALUES (?, ?)", [("a", "1"), ("b", "2")])
    made.close()
    return found


@pytest.fixture
async def connection(path: Path) -> AsyncIterator[Counting]:
    opened = partial(
        sqlite3.connect, path, isolation_level=None, check_same_thread=False, timeout=0
    )
    made = Counting(opened)
    await made
    yield made
    await made.close()


async def asked(connection: OneJourneyConnection, sql: str, *values: object) -> list[object]:
    cursor = await connection.cursor()
    await cursor.execute(sql, values)
    return list(await cursor.fetchall())


def written(path: Path, name: str) -> str | None:
    """What somebody else reads."""
    other = sqlite3.connect(path)
    try:
        row = other.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])
    finally:
        other.close()


def can_write(path: Path) -> bool:
    other = sqlite3.connect(path, timeout=0, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError:
        return False
    finally:
        other.close()
    return True


async def test_a_statement_takes_one_journey_with_its_rows_and_its_beginning(
    connection: Counting,
) -> None:
    connection.begin_to_read()
    cursor = await connection.cursor()
    await cursor.execute("SELECT name, value FROM facts ORDER BY name", ())
    assert [column[0] for column in cursor.description] == ["name", "value"]
    assert list(await cursor.fetchall()) == [("a", "1"), ("b", "2")]
    await cursor.close()
    await connection.commit()
    await connection.rollback()
    assert connection.journeys == 1


async def test_what_reads_has_one_view_until_its_end(connection: Counting, path: Path) -> None:
    connection.begin_to_read()
    before = await asked(connection, "SELECT value FROM facts WHERE name = 'a'")
    with sqlite3.connect(path) as other:
        other.execute("UPDATE facts SET value = '9' WHERE name = 'a'")
    other.close()
    assert await asked(connection, "SELECT value FROM facts WHERE name = 'a'") == before == [("1",)]
    await connection.commit()
    assert await asked(connection, "SELECT value FROM facts WHERE name = 'a'") == [("9",)]


async def test_what_was_read_holds_nobody_up(connection: Counting, path: Path) -> None:
    connection.begin_to_read()
    await asked(connection, "SELECT * FROM facts")
    await connection.commit()
    # It was not waited for, and comes before the next statement.
    await asked(connection, "BEGIN IMMEDIATE")
    assert not can_write(path)
    await connection.rollback()
    assert can_write(path)


async def test_a_transaction_that_asked_nothing_is_over(connection: Counting, path: Path) -> None:
    connection.begin_to_read()
    await connection.commit()
    assert connection.journeys == 0
    await asked(connection, "UPDATE facts SET value = '7' WHERE name = 'b'")
    assert written(path, "b") == "7"


async def test_writing_is_kept_or_taken_back(connection: Counting, path: Path) -> None:
    await asked(connection, "BEGIN IMMEDIATE")
    cursor = await connection.cursor()
    await cursor.executemany("INSERT INTO facts VALUES (?, ?)", [("c", "3"), ("d", "4")])
    assert (cursor.rowcount, cursor.description) == (2, None)
    assert written(path, "c") is None
    await connection.commit()
    assert written(path, "c") == "3"
    await asked(connection, "BEGIN IMMEDIATE")
    await asked(connection, "DELETE FROM facts")
    await connection.rollback()
    assert written(path, "d") == "4"
    assert can_write(path)


async def test_a_statement_whose_caller_left_is_taken_back_with_its_lock(
    connection: Counting, path: Path
) -> None:
    await asked(connection, A_WHILE)
    waiting = asyncio.create_task(asked(connection, A_WHILE))
    await asyncio.sleep(0)
    begins = asyncio.create_task(asked(connection, "BEGIN IMMEDIATE"))
    await asyncio.sleep(0)
    for task in (waiting, begins):
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    # The beginning is still to come, behind what takes a while.
    assert not connection.in_transaction
    await connection.rollback()
    assert not connection.in_transaction
    assert can_write(path)


async def test_an_error_is_the_caller_s(connection: Counting) -> None:
    connection.begin_to_read()
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        await asked(connection, "SELECT * FROM somewhere")
    await connection.rollback()
    assert await asked(connection, "SELECT count(*) FROM facts") == [(2,)]


async def test_what_failed_to_read_lets_nobody_write_unseen(
    connection: Counting, path: Path
) -> None:
    connection.begin_to_read()
    with pytest.raises(sqlite3.OperationalError):
        await connection.run(lambda _: sqlite3.connect("/nowhere/at/all"))
    await connection.rollback()
    await asked(connection, "BEGIN IMMEDIATE")
    await asked(connection, "UPDATE facts SET value = '5' WHERE name = 'a'")
    before = connection.journeys
    await connection.commit()
    assert (connection.journeys - before, written(path, "a")) == (1, "5")


async def rolled_back_twice(connection: OneJourneyConnection) -> None:
    for _ in range(2):
        await connection.run(sqlite3.Connection.rollback)


async def test_an_end_that_fails_is_told_by_the_next_statement(connection: Counting) -> None:
    connection.begin_to_read()
    await asked(connection, "SELECT * FROM facts")

    def fails(_: sqlite3.Connection) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    await connection._end(fails)
    with pytest.raises(sqlite3.OperationalError, match="disk I/O error"):
        await rolled_back_twice(connection)
    assert await asked(connection, "SELECT count(*) FROM facts") == [(2,)]


async def test_closing_comes_to_an_end_where_it_is_ended_by_force_meanwhile(
    connection: Counting,
) -> None:
    # So SQLAlchemy does with the connection of a task that is cancelled.
    await asked(connection, "SELECT 1")
    closing = asyncio.create_task(connection.close())
    await asyncio.sleep(0)
    connection.stop()
    ended = await asyncio.wait_for(asyncio.gather(closing, return_exceptions=True), 20)
    assert [type(one) for one in ended if one is not None] in ([], [ValueError])


async def test_it_may_be_closed_by_two_at_once(connection: Counting) -> None:
    await asked(connection, "SELECT 1")
    both = asyncio.gather(connection.close(), connection.close(), return_exceptions=True)
    ended = await asyncio.wait_for(both, 20)
    assert ended[0] is None


# Many rows


@pytest.mark.parametrize("count", [1, 4, 5, 31, 250, 781])
async def test_rows_are_written_by_few_statements_of_one_journey(
    connection: Counting, count: int
) -> None:
    texts: list[str] = []
    await connection.set_trace_callback(texts.append)
    before = connection.journeys
    cursor = await connection.cursor()
    await cursor.executemany(
        "INSERT INTO facts (name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = 'met'",
        [(f"n{number}", str(number)) for number in range(count - 1)] + [("a", "again")],
    )
    assert connection.journeys == before + 1
    assert cursor.rowcount == count
    assert sum(text.startswith("INSERT") for text in texts) <= count // 250 + 20
    found = dict(await asked(connection, "SELECT name, value FROM facts"))  # type: ignore[arg-type]
    assert found == {f"n{number}": str(number) for number in range(count - 1)} | {
        "a": "met",
        "b": "2",
    }


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE facts SET value = ? WHERE name = ?",
        "INSERT INTO facts (value, name) VALUES (?, 'x' || ?)",
        "INSERT INTO facts (value, name) VALUES ('v', ?) ON CONFLICT DO UPDATE SET value = ?",
    ],
)
async def test_what_takes_more_than_values_runs_for_each_row(
    connection: Counting, sql: str
) -> None:
    cursor = await connection.cursor()
    await cursor.executemany(sql, [("a", "b"), ("b", "a")])
    assert cursor.rowcount == 2


async def test_a_row_that_cannot_be_written_among_many_is_an_error(connection: Counting) -> None:
    await asked(connection, "BEGIN IMMEDIATE")
    cursor = await connection.cursor()
    rows = [(f"n{number}", None) for number in range(300)] + [("a", None)]
    with pytest.raises(sqlite3.IntegrityError):
        await cursor.executemany("INSERT INTO facts (name, value) VALUES (?, ?)", rows)
    await connection.rollback()
    assert await asked(connection, "SELECT count(*) FROM facts") == [(2,)]

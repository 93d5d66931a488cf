"""The few statements that SQLite and Postgres spell through their own dialects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, any_, bindparam, column, func, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as postgres_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from sqlalchemy import ColumnElement, Table
    from sqlalchemy.ext.asyncio import AsyncConnection

_MOST_VARIABLES = 500


def insert(connection: AsyncConnection, table: Table) -> Any:
    """Return an INSERT that knows ON CONFLICT, in the dialect of the connection."""
    return insert_for(connection.dialect.name, table)


def insert_for(dialect: str, table: Table) -> Any:
    """Return an INSERT that knows ON CONFLICT, in the dialect of that name."""
    return postgres_insert(table) if dialect == "postgresql" else sqlite_insert(table)


async def upsert(
    connection: AsyncConnection, table: Table, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows, or replace what is under their primary keys with the columns given."""
    if not rows:
        return
    keys = [column.name for column in table.primary_key]
    statement = insert(connection, table)
    changes = {name: statement.excluded[name] for name in rows[0] if name not in keys}
    await connection.execute(
        statement.on_conflict_do_update(index_elements=keys, set_=changes), list(rows)
    )


async def insert_once(connection: AsyncConnection, table: Table, row: Mapping[str, Any]) -> bool:
    """Insert a row unless a unique constraint already holds it; tell whether it was inserted."""
    result = await connection.execute(
        insert(connection, table).values(row).on_conflict_do_nothing()
    )
    return result.rowcount == 1


def among(dialect: str, one: ColumnElement[Any], name: str) -> ColumnElement[bool]:
    """Return the condition that a column is one of many, which are given when it is executed.

    A list of parameters makes a statement of its own for each length of the list, to be put
    together and read again; this is one text and one parameter, in the form of :func:`as_many`.

    Args:
        dialect: that of the connection.
        name: of the parameter.
    """
    if dialect == "postgresql":
        return one == any_(bindparam(name, type_=ARRAY(Text)))
    each = func.json_each(bindparam(name, type_=Text)).table_valued("value")
    return one.in_(select(column("value")).select_from(each))


def as_many(dialect: str, ids: Iterable[str]) -> Any:
    """Return ids in the form in which :func:`among` takes them."""
    whole = list(ids)
    return whole if dialect == "postgresql" else json.dumps(whole, ensure_ascii=False)


def batches(ids: Iterable[str]) -> Iterator[list[str]]:
    """Cut ids into lists short enough for one IN clause."""
    whole = list(ids)
    for start in range(0, len(whole), _MOST_VARIABLES):
        yield whole[start : start + _MOST_VARIABLES]

"""Many rows in one statement, as pages of a listing bring them.

SQLAlchemy looks at each value of each row, which takes longer than the database does for the row.
Here a statement is put together once and gets its values as they are: SQLite's driver one tuple a
row, Postgres one array a column, which is one round trip and one plan.
"""

from __future__ import annotations

from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from sqlalchemy import Text, bindparam, column, func, select
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.types import String

from drivefeed.catalog.dialect import insert_for

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Dialect, Table
    from sqlalchemy.ext.asyncio import AsyncConnection


async def insert_all(
    connection: AsyncConnection, table: Table, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows, all of which have values for the same columns.

    Args:
        rows: values by column, of the driver's own types.
    """
    await _write(connection, table, rows, replaces=False)


async def replace_all(
    connection: AsyncConnection, table: Table, rows: Sequence[Mapping[str, Any]]
) -> None:
    """Insert rows, or replace what is under their primary keys with the columns given.

    Args:
        rows: as for :func:`insert_all`; no two of them have the same key.
    """
    await _write(connection, table, rows, replaces=True)


async def _write(
    connection: AsyncConnection,
    table: Table,
    rows: Sequence[Mapping[str, Any]],
    *,
    replaces: bool,
) -> None:
    if not rows:
        return
    names = tuple(rows[0])
    values = map(itemgetter(*names), rows)
    if connection.dialect.name == "postgresql":
        arrays = dict(zip(names, map(list, zip(*values, strict=True)), strict=True))
        await connection.execute(_of_arrays(table, names, replaces), arrays)
    else:
        text, order = _of_tuples(table, names, replaces, connection.dialect)
        await connection.exec_driver_sql(text, list(map(itemgetter(*order), rows)))


@lru_cache(maxsize=64)
def _of_arrays(table: Table, names: tuple[str, ...], replaces: bool) -> Any:  # noqa: FBT001 - a key of the cache
    """Return the statement that takes one array for each column, under the column's name."""
    columns = [table.c[name] for name in names]
    # A cast to a limited length would cut what is too long, without a word.
    types = [Text() if isinstance(one.type, String) else one.type for one in columns]
    arrays = [
        bindparam(name, type_=ARRAY(type_)) for name, type_ in zip(names, types, strict=True)
    ]
    given = func.unnest(*arrays).table_valued(
        *(column(name, type_) for name, type_ in zip(names, types, strict=True))
    )
    statement = insert_for("postgresql", table).from_select(names, select(given.render_derived()))
    return _replacing(statement, table, names) if replaces else statement


@lru_cache(maxsize=64)
def _of_tuples(
    table: Table,
    names: tuple[str, ...],
    replaces: bool,  # noqa: FBT001 - a key of the cache
    dialect: Dialect,
) -> tuple[str, tuple[str, ...]]:
    """Return the statement that takes a tuple for each row, and the order of its values."""
    statement = insert_for("sqlite", table)
    if replaces:
        statement = _replacing(statement, table, names)
    compiled = statement.compile(dialect=dialect, column_keys=list(names))
    order = compiled.positiontup  # type: ignore[attr-defined] # of SQLCompiler
    assert order is not None
    return str(compiled), tuple(order)


def _replacing(statement: Any, table: Table, names: tuple[str, ...]) -> Any:
    keys = [one.name for one in table.primary_key]
    changes = {name: statement.excluded[name] for name in names if name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changes)

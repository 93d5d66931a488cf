"""Many rows in one statement say the same as row by row, on both databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event, select
from sqlalchemy.exc import DBAPIError

from drivefeed.catalog.leaving import approve_removals
from drivefeed.catalog.many_rows import insert_all, replace_all
from drivefeed.catalog.pages_rounds import begin_enumeration
from drivefeed.catalog.tables import imports, items
from unit.catalog.rig import ROOT, Rig, file, folder, gone

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from drivefeed.catalog.engine import Catalog


def _row(rig: Rig, item_id: str, **more: Any) -> dict[str, Any]:
    row = {
        "drive_id": rig.drive_id,
        "item_id": item_id,
        "parent_id": None,
        "name": "a 'quoted' \"name\"\n\N{SNOWMAN} \\ \\u0041",
        "kind": "file",
        "size": 2**62,
        "malware": False,
        "shared": None,
        "dirty": True,
        "generation": 1,
        "version_key": "",
    }
    return row | more


async def test_what_was_written_is_what_is_read(catalog: Catalog) -> None:
    rig = await Rig.make(catalog)
    rows = [_row(rig, "one"), _row(rig, "two", shared=True, malware=True, parent_id="one")]
    async with catalog.write() as connection:
        await replace_all(connection, items, rows)
    found = {row["item_id"]: row for row in await rig.rows(items)}
    assert {key: {name: row[name] for name in rows[0]} for key, row in found.items()} == {
        row["item_id"]: row for row in rows
    }


async def test_what_is_there_is_replaced_and_other_columns_stay(catalog: Catalog) -> None:
    rig = await Rig.make(catalog)
    async with catalog.write() as connection:
        await insert_all(
            connection, items, [_row(rig, "one", etag="e"), _row(rig, "two", etag="f")]
        )
        await replace_all(connection, items, [_row(rig, "one", name="new")])
    found = {row["item_id"]: (row["name"], row["etag"]) for row in await rig.rows(items)}
    assert found == {"one": ("new", "e"), "two": (_row(rig, "two")["name"], "f")}


async def test_a_row_that_is_there_already_is_not_inserted(catalog: Catalog) -> None:
    rig = await Rig.make(catalog)
    rows = [_row(rig, "one")]
    await _written(catalog, rows, insert_all)
    with pytest.raises(DBAPIError):
        await _written(catalog, rows, insert_all)


async def test_nul_is_left_out_where_the_database_takes_none(catalog: Catalog) -> None:
    rig = await Rig.make(catalog)
    async with catalog.write() as connection:
        rows = [_row(rig, "one", name="a\0b \\u0000"), _row(rig, "two", name="c \\u0000")]
        await replace_all(connection, items, rows)
    found = {row["item_id"]: row["name"] for row in await rig.rows(items)}
    assert found["one"].replace("\0", "") == "ab \\u0000"
    assert found["two"] == "c \\u0000"


async def test_what_is_too_long_for_its_column_is_not_cut(catalog: Catalog) -> None:
    rig = await Rig.make(catalog)
    rows = [_row(rig, "x" * 201)]
    if catalog._database.engine.dialect.name == "postgresql":
        with pytest.raises(DBAPIError):
            await _written(catalog, rows, replace_all)
    else:
        # SQLite's columns have no length.
        await _written(catalog, rows, replace_all)
        assert [row["item_id"] for row in await rig.rows(items)] == ["x" * 201]


async def _written(catalog: Catalog, rows: list[dict[str, Any]], write: Any) -> None:
    async with catalog.write() as connection:
        await write(connection, items, rows)


async def _statements(rig: Rig, work: Callable[[], Awaitable[Any]]) -> int:
    """Count the statements that some work takes."""
    count = 0

    def listen(*_: Any) -> None:
        nonlocal count
        count += 1

    engine = rig.catalog._database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", listen)
    try:
        await work()
    finally:
        event.remove(engine, "before_cursor_execute", listen)
    return count


@pytest.mark.parametrize("generation", [1, 2])
async def test_a_page_takes_as_many_statements_whatever_is_on_it(
    catalog: Catalog, generation: int
) -> None:
    """Of a listing of everything, whose pages are many; a drive of a million items has 5,000."""
    rig = await Rig.make(catalog)
    await rig.connect()
    if generation == 2:
        await rig.enumerate([ROOT, folder("docs"), file("x", "docs")])
    await begin_enumeration(catalog, await rig.drive())
    await rig.apply([ROOT, folder("docs"), folder("sub", "docs")], ends=False)
    took = []
    for count in (3, 150):
        page = [file(f"f{count}-{number}", "sub") for number in range(count)]

        async def apply(page: list[Any] = page) -> None:
            await rig.apply(page, ends=False)

        took.append(await _statements(rig, apply))
    assert took[0] == took[1] <= 20


async def test_hiding_takes_as_many_statements_whatever_leaves(catalog: Catalog) -> None:
    took = []
    for count in (60, 180):
        rig = await Rig.make(catalog, name=f"org {count}")
        await rig.connect()
        await rig.scan()
        files = [file(f"f{number}", "sub") for number in range(count)]
        await rig.enumerate([ROOT, folder("docs"), folder("sub", "docs"), *files])
        await rig.round([folder("sub", "root")])
        assert await rig.attention() == "mass_removal"

        async def approve(rig: Rig = rig, count: int = count) -> None:
            assert await approve_removals(catalog, rig.connections["docs"]) == count

        took.append(await _statements(rig, approve))
    assert took[0] == took[1]
    async with catalog.read() as connection:
        states = await connection.execute(select(imports.c.state).distinct())
        assert set(states.scalars()) == {"withdrawing"}


async def test_few_removals_are_let_go_without_counting_what_stays(catalog: Catalog) -> None:
    """Counting the files of a connection takes seconds where they are a million."""
    rig = await Rig.make(catalog)
    await rig.connect()
    await rig.scan()
    await rig.enumerate(
        [ROOT, folder("docs"), *[file(f"f{number}", "docs") for number in range(9)]]
    )
    said: list[str] = []

    def listen(*args: Any) -> None:
        said.append(args[2])

    engine = catalog._database.engine.sync_engine
    event.listen(engine, "before_cursor_execute", listen)
    try:
        await rig.round(gone("f1"))
    finally:
        event.remove(engine, "before_cursor_execute", listen)
    assert await rig.attention() is None
    assert "f1" not in await rig.coverage()
    counts = [one for one in said if "count(*)" in one and "FROM coverage" in one]
    assert counts
    assert all("leaving" in one for one in counts)

"""What a round leaves unclear is found among what is dirty, however large the drive is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import event

from drivefeed.catalog import pages_doubts
from drivefeed.catalog.engine import open_catalog
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.catalog.engine import Catalog


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[Catalog]:
    url = new_catalog(tmp_path / "catalog.sqlite")
    opened = await open_catalog(
        url, clock=ManualClock(), ids=CountedIds(), checkpoint=no_checkpoint
    )
    yield opened
    await opened.aclose()


async def test_each_question_about_items_begins_with_the_index_of_the_dirty_ones(
    catalog: Catalog,
) -> None:
    rig = await Rig.make(catalog)
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs")])
    await rig.apply([file("b", "never"), folder("x", "y"), folder("y", "x")])
    drive = await rig.drive()
    asked: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        asked.append((statement, values))

    async with catalog.read() as connection:
        engine = connection.sync_connection
        event.listen(engine, "before_cursor_execute", note)
        questions = (
            pages_doubts._unknown_parents,
            pages_doubts._left_out,
            pages_doubts._half_told,
        )
        for question in questions:
            await question(connection, drive, 50)
        event.remove(engine, "before_cursor_execute", note)
        assert len(asked) == len(questions)
        for statement, values in asked:
            plan = await connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
            first = plan.all()[0][3]
            assert "ix_items_dirty" in first, statement
    assert await pages_doubts.doubtful(catalog, drive, asked=(), limit=50) == ["never", "x", "y"]

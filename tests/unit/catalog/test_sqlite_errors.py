"""Errors of a SQLite file that pass are waited for; the others are told as what they are."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from drivefeed.catalog.engine import Catalog, open_catalog
from drivefeed.domain.errors import Part, PartDown
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "catalog.sqlite"


@pytest.fixture
async def catalog(file: Path) -> AsyncIterator[Catalog]:
    url = new_catalog(file)
    opened = await open_catalog(
        url, clock=ManualClock(), ids=CountedIds(), checkpoint=no_checkpoint
    )
    yield opened
    await opened.aclose()


async def write(catalog: Catalog, *first: str) -> None:
    async with catalog.write() as connection:
        for statement in first:
            await connection.execute(text(statement))
        await connection.execute(
            text("INSERT INTO facts (name, value) VALUES ('x', hex(zeroblob(500000)))")
        )


async def test_a_full_disk(catalog: Catalog) -> None:
    async with catalog.read() as connection:
        await connection.execute(text("PRAGMA max_page_count = 1"))
    with pytest.raises(PartDown, match="disk of the catalog is full") as caught:
        await write(catalog)
    assert caught.value.part is Part.CATALOG


async def test_a_lock_of_another_program_when_writing_and_when_reading(
    catalog: Catalog, file: Path
) -> None:
    async with catalog.read() as connection:
        await connection.execute(text("PRAGMA busy_timeout = 50"))
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(PartDown, match="Another program keeps the catalog's file locked"):
            await write(catalog)
        other.execute("ROLLBACK")
    await write(catalog)


async def test_a_damaged_file_is_no_reason_to_wait(catalog: Catalog, file: Path) -> None:
    await write(catalog)
    await catalog.aclose()
    for one in file.parent.iterdir():
        await asyncio.to_thread(one.write_bytes, b"no database" * 1000)
    with pytest.raises(DatabaseError):
        await write(catalog)


async def test_a_file_that_was_deleted_is_not_made_anew(catalog: Catalog, file: Path) -> None:
    async with catalog.read():
        await asyncio.to_thread(file.unlink)
        with pytest.raises(PartDown, match="file cannot be opened"):
            async with catalog.read():
                pass
    assert not await asyncio.to_thread(file.exists)


async def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = tmp_path / "a# %41 'é' &x=y"
    await asyncio.to_thread(folder.mkdir)
    opened = await open_catalog(
        sqlite_url(folder / "catalog.sqlite"),
        clock=ManualClock(),
        ids=CountedIds(),
        checkpoint=no_checkpoint,
    )
    await write(opened)
    await opened.aclose()
    assert await asyncio.to_thread(os.listdir, folder) == ["catalog.sqlite"]

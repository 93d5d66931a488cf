"""How much a catalog's WAL gathers before it is written back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import text

from drivefeed.catalog.engine import open_catalog
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

_MIB = 1 << 20


async def test_the_wal_gathers_some_megabytes_and_no_more(tmp_path: Path) -> None:
    file = tmp_path / "catalog.sqlite"
    catalog = await open_catalog(
        new_catalog(file), clock=ManualClock(), ids=CountedIds(), checkpoint=no_checkpoint
    )
    wal = file.with_name(f"{file.name}-wal")
    sizes: list[int] = []
    for number in range(24):
        async with catalog.write() as connection:
            await connection.execute(
                text("INSERT INTO facts (name, value) VALUES (:name, hex(zeroblob(500000)))"),
                {"name": str(number)},
            )
        sizes.append(wal.stat().st_size)
    await catalog.aclose()
    assert sizes[7] > 7 * _MIB, "it was written back after SQLite's own 4 MB"
    assert max(sizes) < 18 * _MIB

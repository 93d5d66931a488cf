"""A process that wants an index alone again and again, beside others that want the same.

``python -m support.turn_worker URL FOLDER NAME TURNS``: while it has its turn there is a file in
the folder, which no other process may find there.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from drivefeed.catalog import index_turns
from drivefeed.catalog.engine import open_catalog
from drivefeed.system import SystemClock, SystemIds

INDEX = "qdrant/shared"


async def main(url: str, folder: Path, name: str, turns: int) -> None:
    catalog = await open_catalog(
        url, clock=SystemClock(), ids=SystemIds(), checkpoint=lambda _: None
    )
    had = 0
    while had < turns:
        _, term = await index_turns.take_turn(catalog, INDEX, name, for_ms=60_000)
        if term is None:
            await asyncio.sleep(0.002)
            continue
        here = folder / "alone"
        here.touch(exist_ok=False)
        await asyncio.sleep(0.002)
        here.unlink()
        (folder / f"term-{term}").touch(exist_ok=False)
        had += 1
        await index_turns.end_turn(catalog, INDEX, name)
    await catalog.aclose()


asyncio.run(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])))

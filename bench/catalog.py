"""How fast the catalog takes a first listing, and how it finds what is due in a long backlog.

Run: ``python bench/catalog.py [PAGES]``. Prints one line for people and one for programs.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# It measures a checkout, with the tests' hand-made drive.
sys.path[:0] = ["src", "tests"]

from drivefeed.catalog import deliveries, pages  # noqa: E402 - after the path above
from drivefeed.catalog.engine import open_catalog, sqlite_url  # noqa: E402 - after the path above
from support.clock import CountedIds, ManualClock, no_checkpoint  # noqa: E402 - after the path above
from unit.catalog.rig import ROOT, Rig, file, folder  # noqa: E402 - after the path above

_FILES_A_PAGE = 200


async def measure(count: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as path:
        catalog = await open_catalog(
            sqlite_url(Path(path) / "bench.db"),
            clock=ManualClock(),
            ids=CountedIds(),
            checkpoint=no_checkpoint,
        )
        rig = await Rig.make(catalog)
        await rig.connect()
        await pages.begin_enumeration(catalog, await rig.drive())
        await rig.apply([ROOT, folder("docs"), folder("deep", "docs")], ends=False)
        contents = [
            [file(f"f{page}-{number}", "deep") for number in range(_FILES_A_PAGE)]
            for page in range(count)
        ]
        started, spent = time.monotonic(), time.process_time()
        await rig.apply(*contents, ends=False)
        applied, spent = time.monotonic(), time.process_time() - spent
        looks = 20
        for _ in range(looks):
            async with catalog.read() as connection:
                await deliveries.stages_due(connection, now=10**14, horizon_ms=60_000)
                await deliveries.due(connection, "transfer", now=10**14, horizon_ms=0, limit=40)
        looked = time.monotonic()
        await catalog.aclose()
    return {
        "pages": count,
        "files": count * _FILES_A_PAGE,
        "pages_per_second": round(count / (applied - started), 1),
        "cpu_ms_per_page": round(spent * 1000 / count, 1),
        "relay_look_ms": round((looked - applied) * 1000 / looks, 2),
    }


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    figures = asyncio.run(measure(count))
    print(
        f"{figures['pages_per_second']} pages of {_FILES_A_PAGE} new files a second "
        f"({figures['cpu_ms_per_page']} ms of CPU each); "
        f"a look of the relay over {figures['files']} due rows takes "
        f"{figures['relay_look_ms']} ms"
    )
    print(json.dumps({"bench": "catalog", **figures}))


if __name__ == "__main__":
    main()

"""A process that copies one file at a time, and waits for its rival once it knows of the quota.

Asked on standard input with a line of JSON; says ``read`` when the quota was read and waits for the
next line; then says what became of the file.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.quota_line import hold_or_wait
from drivefeed.indexer.extract import ExtractionPool
from drivefeed.indexer.model import Limits
from drivefeed.indexer.reading import StoredFiles
from drivefeed.ports import Stage
from drivefeed.stages import imports as stages_of_imports
from drivefeed.stages.breaker import Breakers
from drivefeed.stages.runner import Runner
from drivefeed.stages.transfer import Transfer
from drivefeed.stores.directory import DirectoryStore
from drivefeed.system import SystemClock, SystemIds, no_checkpoint
from drivefeed.telemetry import configure_logs
from support.offline import Job


def say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


async def after_the_barrier(*given: Any) -> bool:
    """Hold pages once the rival has come as far; that there is a limit was read before."""
    say("read")
    assert sys.stdin.readline() == "go\n"
    return await hold_or_wait(*given)


async def main(name: str, url: str, folder: Path) -> None:
    configure_logs(json=True, stream=sys.stderr)
    stages_of_imports.hold_or_wait = after_the_barrier  # type: ignore[assignment]
    clock, ids = SystemClock(), SystemIds()
    catalog = await open_catalog(url, clock=clock, ids=ids, checkpoint=no_checkpoint)
    store = DirectoryStore(folder / "objects")
    runner = Runner(catalog, Breakers(clock, ids), owner=name)
    async with ExtractionPool(size=1) as pool:
        files = StoredFiles(store, pool, Limits(), folder, checkpoint=no_checkpoint)
        nobody: Any = None  # the object lies there already, as after a crash
        run = runner.bind(Transfer(catalog, nobody, store, count_pages=files.count_pages))
        say("ready")
        while line := await asyncio.to_thread(sys.stdin.readline):
            payload = json.loads(line)
            said = await run(Job(Stage.TRANSFER, payload["import_id"], payload))
            say(json.dumps(said))
    await catalog.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))

"""A process that plays imports until it is killed."""

from __future__ import annotations

import asyncio
import random
import sys

from drivefeed.catalog.engine import open_catalog
from drivefeed.domain.errors import PartDown
from drivefeed.system import SystemClock, SystemIds
from support.clock import no_checkpoint
from support.storm import Player


async def main(name: str, url: str) -> None:
    catalog = await open_catalog(
        url, clock=SystemClock(), ids=SystemIds(), checkpoint=no_checkpoint
    )
    player = Player(catalog, name, random.Random(name), busy_ms=300)
    while True:
        try:
            if not await player.step():
                await asyncio.sleep(0.05)
        except PartDown:
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))

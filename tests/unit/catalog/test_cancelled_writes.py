"""A write that is cancelled anywhere leaves the catalog to the next one."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from typing import TYPE_CHECKING

from sqlalchemy import text

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog

TIMES = 60
LONGEST_WAIT = 0.004


async def write(catalog: Catalog) -> None:
    async with catalog.write("test") as connection:
        await connection.execute(text("UPDATE facts SET value = '1'"))
        await connection.execute(text("UPDATE facts SET value = '2'"))


async def test_a_cancelled_write_keeps_no_lock(catalog: Catalog) -> None:
    chance = random.Random(1)
    for number in range(TIMES):
        writing = asyncio.create_task(write(catalog))
        await asyncio.sleep(chance.random() * LONGEST_WAIT)
        writing.cancel()
        if number % 3 == 0:
            await asyncio.sleep(0)
            writing.cancel()
        with suppress(asyncio.CancelledError):
            await writing
        async with asyncio.timeout(15):
            await write(catalog)

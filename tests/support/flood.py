"""A great many calls to one endpoint on loopback, over a few connections."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

AT_ONCE = 16


async def flood(call: Callable[[], Awaitable[int]], calls: int) -> list[int]:
    """Call so many times, a few at once; return the statuses."""
    left = iter(range(calls))

    async def some() -> list[int]:
        # The iterator is shared: whoever is free takes the next one.
        return [await call() for _ in left]

    parts = await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return [status for part in parts for status in part]

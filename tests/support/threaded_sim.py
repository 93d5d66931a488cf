"""graphsim in a thread of the test's process, because commands have an event loop of their own."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from graphsim.serving import GraphSim, serve

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@contextmanager
def threaded_sim(*folders: Path, **options: Any) -> Iterator[GraphSim]:
    """Serve while the block lasts; options are those of :func:`graphsim.serving.serve`."""
    ready, over = threading.Event(), asyncio.Event()
    found: list[GraphSim] = []
    loop = asyncio.new_event_loop()

    async def run() -> None:
        async with serve(*folders, **options) as sim:
            found.append(sim)
            ready.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    assert ready.wait(60)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()

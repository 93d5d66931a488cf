from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.queue import BullmqQueue
from support.publish_jobs import PREFIX, StillIds
from support.valkey import own_valkey, valkey_server, valkey_url

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

__all__ = ["make_queue", "own_valkey", "valkey_server", "valkey_url"]


@pytest.fixture
async def make_queue() -> AsyncIterator[Callable[..., BullmqQueue]]:
    made: list[BullmqQueue] = []

    def make(url: str, **more: Any) -> BullmqQueue:
        queue = BullmqQueue(url, prefix=PREFIX, name="host:1 (test)", ids=StillIds(), **more)
        made.append(queue)
        return queue

    yield make
    for queue in made:
        await queue.aclose()

"""A caller that goes while its thread works: for how long it is waited for."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest

from drivefeed.stores.threads import Threads

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def threads() -> AsyncIterator[Threads]:
    made = Threads(limit=2, name="test", grace=0.05)
    yield made
    await made.aclose()


async def test_what_takes_away_is_over_when_its_caller_has_gone(threads: Threads) -> None:
    may_end, ended = threading.Event(), []

    def take_away() -> None:
        assert may_end.wait(20)
        ended.append(True)

    caller = asyncio.create_task(threads.run_to_its_end(take_away))
    await asyncio.sleep(0.05)
    caller.cancel()
    await asyncio.wait({caller}, timeout=0.3)
    assert not caller.done(), "somebody else could put something there that it takes away"
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended


async def test_all_else_is_waited_for_for_a_grace(threads: Threads) -> None:
    may_end = threading.Event()
    caller = asyncio.create_task(threads.run(may_end.wait, 20))
    await asyncio.sleep(0.05)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(caller, 5)
    may_end.set()

"""The watch of the event loop: how long it did not come round."""

from __future__ import annotations

import asyncio
import gc
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from drivefeed.services import loop
from drivefeed.services.loop import LoopWatch, unbroken

if TYPE_CHECKING:
    import pytest

STALL = 0.2


async def test_a_stall_is_measured_and_told_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    watch = LoopWatch()
    # One that was used already may keep what a command of another test had it write to.
    monkeypatch.setattr(loop, "_log", structlog.get_logger())
    with structlog.testing.capture_logs() as said:
        watching = asyncio.create_task(watch.run())
        await asyncio.sleep(0.12)
        time.sleep(STALL)  # noqa: ASYNC251 - the loop is held up on purpose
        await asyncio.sleep(0.12)
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching
    # It looks each 50 ms, so that it may miss so much of a stall's beginning.
    assert watch.longest >= STALL - 0.05
    (told,) = (one for one in said if one["event"] == "loop_watched")
    assert told["longest_stall_ms"] == round(watch.longest * 1000)


async def test_it_goes_on_measuring_after_a_stall() -> None:
    watch = LoopWatch()
    watching = asyncio.create_task(watch.run())
    await asyncio.sleep(0.06)
    time.sleep(0.1)  # noqa: ASYNC251
    await asyncio.sleep(0.06)
    first = watch.longest
    time.sleep(first + STALL)  # noqa: ASYNC251
    await asyncio.sleep(0.06)
    assert watch.longest > first
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching


async def test_what_nobody_waits_for_any_more_fails_without_a_complaint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "_MOMENT_SECONDS", 0.01)
    complaints: list[dict[str, object]] = []
    running = asyncio.get_running_loop()
    running.set_exception_handler(lambda _, told: complaints.append(told))
    may_fail = asyncio.Event()

    async def work() -> None:
        await may_fail.wait()
        raise ValueError

    waiting = asyncio.create_task(unbroken(work()))
    await asyncio.sleep(0)
    waiting.cancel()
    with suppress(asyncio.CancelledError):
        await waiting
    may_fail.set()
    await asyncio.sleep(0.01)
    gc.collect()
    assert waiting.cancelled()
    assert complaints == []

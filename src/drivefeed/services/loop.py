"""Watches the event loop: how long it did not come round."""

from __future__ import annotations

import asyncio
import gc
from typing import TYPE_CHECKING, Any, TypeVar

from drivefeed.domain.redact import redact
from drivefeed.telemetry import LOOP_STALL_SECONDS, log

if TYPE_CHECKING:
    from collections.abc import Coroutine

T = TypeVar("T")

_MOMENT_SECONDS = 2.0
_EVERY_SECONDS = 0.05
_WORTH_A_LINE_SECONDS = 0.25
_OBJECTS_BETWEEN_COLLECTIONS = 700
"""Python's own number; while everything is loaded, it is a larger one."""

_log = log("loop")


class LoopWatch:
    """Measures stalls of the loop it runs on.

    Attributes:
        longest: the longest stall in seconds since the start.
    """

    def __init__(self) -> None:
        self.longest = 0.0

    async def run(self) -> None:
        """Measure until cancelled."""
        loop = asyncio.get_running_loop()
        timer: asyncio.TimerHandle

        def measure() -> None:
            nonlocal timer
            self._note(loop.time() - timer.when())
            timer = loop.call_later(_EVERY_SECONDS, measure)

        # A bare timer: it comes round all day, and a sleeping task takes five times as long.
        timer = loop.call_later(_EVERY_SECONDS, measure)
        try:
            await asyncio.Event().wait()
        finally:
            timer.cancel()
            _log.info("loop_watched", longest_stall_ms=round(self.longest * 1000))

    def _note(self, stall: float) -> None:
        if stall > self.longest:
            self.longest = stall
            LOOP_STALL_SECONDS.set(stall)
        if stall > _WORTH_A_LINE_SECONDS:
            _log.warning("loop_stalled", ms=round(stall * 1000))


def spare_the_collector() -> None:
    """Leave what was imported out of later collections, each of which stops the event loop.

    A full one took 31 to 63 ms over the 130,000 objects of a process that had done nothing yet.
    """
    gc.collect()
    gc.freeze()
    # Short collections from here on.
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Await something to its end, also where whoever waits is cancelled in the middle.

    A transaction that is cancelled between two statements may keep the catalog's lock for a while,
    from those who finish their work at the end of a process. What takes longer than a moment is
    left alone.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        # Nobody asks any more how it ends, and asyncio would complain of that.
        task.add_done_callback(_note_failure)
        if not task.done():
            await asyncio.wait({task}, timeout=_MOMENT_SECONDS)
        raise


def _note_failure(task: asyncio.Future[Any]) -> None:
    error = None if task.cancelled() else task.exception()
    if error is not None:
        _log.debug("failed_after_its_end", error=redact(str(error)))

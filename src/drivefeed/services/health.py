"""How a process stands: whether it lives, and whether it is ready for work."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from drivefeed import __version__

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from drivefeed.services.loop import LoopWatch
    from drivefeed.services.pulse import Pulse
    from drivefeed.stages.breaker import Breakers


class Health:
    """What a process says of itself.

    Args:
        role: how the role is called.
        ready: set once deliveries flow.
        stopping: set once it was asked to end.

    Attributes:
        pulse: what of it turns; None while it starts.
        has_model: says whether the embedding model is in memory; None where there is none.
    """

    def __init__(
        self,
        *,
        role: str,
        breakers: Breakers,
        loop_watch: LoopWatch,
        ready: asyncio.Event,
        stopping: asyncio.Event,
    ) -> None:
        self._role = role
        self._breakers = breakers
        self._loop_watch = loop_watch
        self._ready = ready
        self._stopping = stopping
        self.pulse: Pulse | None = None
        self.has_model: Callable[[], bool] | None = None

    async def lives(self) -> tuple[bool, dict[str, Any]]:
        """Return whether a restart would not help, and what there is to say as JSON values."""
        stuck = {} if self.pulse is None else await self.pulse.stuck()
        said = {
            "status": "stuck" if stuck else "ok",
            "stuck": stuck,
            "role": self._role,
            "version": __version__,
            "pid": os.getpid(),
            "down": self._breakers.open_parts(),
            "longest_stall_ms": round(self._loop_watch.longest * 1000),
        }
        if self.has_model is not None:
            said["model_loaded"] = self.has_model()
        return not stuck, said

    async def is_ready(self) -> tuple[bool, dict[str, Any]]:
        """Return whether it takes on work now, and why not as JSON values.

        A process that starts or ends is not ready, and neither is one whose catalog does not
        answer. What else is down is waited for.
        """
        words = ""
        if self._stopping.is_set():
            words = "It ends: running jobs are finished, and nothing new is begun."
        elif self.pulse is None or not self._ready.is_set():
            words = "It starts."
        elif not await self.pulse.catalog_answers():
            words = "It waits for the catalog."
        return not words, {"ready": not words, "words": words, "role": self._role}

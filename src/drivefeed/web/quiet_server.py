"""uvicorn's server inside of a process that has other work."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final

import uvicorn

if TYPE_CHECKING:
    from uvicorn import Config

_TICK_SECONDS: Final = 1.0
"""How often the date of the answers is set anew."""


class QuietServer(uvicorn.Server):
    """Leaves signals to whoever runs it, which ends everything in order.

    uvicorn looks ten times a second whether it is to end, all day; this one is told.
    """

    def __init__(self, config: Config) -> None:
        self._ending = asyncio.Event()
        super().__init__(config)

    @property
    def should_exit(self) -> bool:
        """Whether to answer what was asked, and then end."""
        return self._ending.is_set()

    @should_exit.setter
    def should_exit(self, wanted: bool) -> None:
        if wanted:
            self._ending.set()
        else:
            self._ending.clear()

    def capture_signals(self) -> Any:
        """Capture none."""
        return nullcontext()

    async def main_loop(self) -> None:
        """Serve until it is to end."""
        # Tick 0 is one of those at which uvicorn sets the date.
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK_SECONDS):
                    await self._ending.wait()

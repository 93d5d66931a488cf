"""Waiting for a condition with a deadline, in place of sleeping and hoping."""

from __future__ import annotations

import asyncio
import inspect
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


async def until(condition: Callable[[], Any], *, seconds: float = 20.0, what: str = "") -> Any:
    """Return the condition's first true value; fail the test after ``seconds``."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        assert time.monotonic() < deadline, f"not within {seconds} s: {what or condition}"
        await asyncio.sleep(0.02)

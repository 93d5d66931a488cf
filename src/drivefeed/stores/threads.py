"""Blocking calls in threads of the store's own, with a defined end under cancellation."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
T = TypeVar("T")


class Threads:
    """A bounded pool. A store's calls never wait behind other users of the default executor.

    Args:
        limit: how many blocking calls may run at once.
        grace: seconds for which a cancelled caller waits for the call it cannot interrupt, so
            that in the normal case nothing happens any more once the caller has gone.
    """

    def __init__(self, *, limit: int, name: str, grace: float) -> None:
        self._pool = ThreadPoolExecutor(limit, thread_name_prefix=name)
        self._grace = grace

    async def run(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``call`` in a thread and return its result.

        Raises:
            asyncio.CancelledError: after the call has ended, or after the grace.
        """
        return await self._run(partial(call, *args, **kwargs), self._grace)

    async def run_to_its_end(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Run ``call`` in a thread and return its result.

        For what takes away: a call that goes on when its caller has gone would take away what the
        next one has put there meanwhile.

        Raises:
            asyncio.CancelledError: after the call has ended; at once where it is cancelled again.
        """
        return await self._run(partial(call, *args, **kwargs), None)

    async def _run(self, call: Callable[[], T], grace: float | None) -> T:
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._pool, call)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait({future}, timeout=grace)
            if future.done() and not future.cancelled():
                future.exception()  # marks it as seen: the cancellation is what the caller gets
            raise

    async def aclose(self) -> None:
        """Wait for running calls and end the threads."""
        await asyncio.to_thread(self._pool.shutdown, wait=True, cancel_futures=True)

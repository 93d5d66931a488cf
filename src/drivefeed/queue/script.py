"""A Lua script in Redis that gives up quickly, for what is shared beside the queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drivefeed.queue.connection import answering, producer_client

if TYPE_CHECKING:
    from collections.abc import Sequence

ANSWER_WITHIN = 2.0
"""Seconds until Redis counts as away. Whoever asks has something to do without it."""


class RedisScript:
    """One script, sent by its checksum, and as a whole where Redis does not have it (any more).

    Args:
        url: of Redis or Valkey.
        text: Lua.

    Raises:
        ValueError: ``url`` is no Redis URL.
    """

    def __init__(self, url: str, text: str) -> None:
        self._url = url
        self._client = producer_client(url, retries=1)
        self._script = self._client.register_script(text)

    async def __call__(self, keys: Sequence[str], args: Sequence[str | int | float]) -> list[Any]:
        """Run it.

        Raises:
            PartDown: Redis does not answer within :data:`ANSWER_WITHIN`, or refuses.
        """
        async with answering(self._url, ANSWER_WITHIN):
            found: list[Any] = await self._script(keys=list(keys), args=list(args))
        return found

    async def aclose(self) -> None:
        """Close connections."""
        await self._client.aclose()

"""How we talk to Redis: producers fail fast, workers wait."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from redis import exceptions as errors
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff

from drivefeed.queue.faults import queue_down

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

ANSWER_WITHIN = 4.0
"""Seconds after which a producer gives up on Redis: it has answered within five, busy or not."""

_WORKER_OPTIONS = {
    # A worker blocks for up to 10 s in one read. redis-py 8 would cut that after 5 s, and a
    # delayed job on an idle queue then started minutes late.
    "socket_timeout": "30",
    "socket_connect_timeout": "5",
    "socket_keepalive": "true",
    "health_check_interval": "30",
}
_PRODUCER_OPTIONS = {
    "socket_timeout": "3",
    "socket_connect_timeout": "2",
    "socket_keepalive": "true",
    "health_check_interval": "30",
}
_RETRIED: list[type[Exception]] = [
    errors.ConnectionError,
    errors.TimeoutError,
    errors.BusyLoadingError,
]


def with_options(url: str, options: dict[str, str]) -> str:
    """Return ``url`` with ``options`` in its query, whatever they were before."""
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query)), **options}
    return urlunsplit(parts._replace(query=urlencode(query)))


def worker_url(url: str) -> str:
    """Return the URL that BullMQ's workers connect to."""
    return with_options(url, _WORKER_OPTIONS)


def worker_retry() -> Retry:
    """Return how a worker repeats a command: soon at first, and for about two minutes in all.

    BullMQ's own default waits up to 20 s between two tries, so that a worker would notice late
    that Redis is back.
    """
    return Retry(ExponentialBackoff(cap=2, base=0.1), 60)


def producer_client(url: str) -> Redis:
    """Return the client for everything but workers: a small pool that gives up quickly.

    Raises:
        ValueError: ``url`` is no Redis URL.
    """
    pool = BlockingConnectionPool.from_url(
        with_options(url, _PRODUCER_OPTIONS),
        max_connections=8,
        timeout=3,
        decode_responses=True,
        retry=Retry(ExponentialBackoff(cap=0.5, base=0.05), 3),
        retry_on_error=_RETRIED,
    )
    return Redis.from_pool(pool)


@asynccontextmanager
async def answering(url: str, seconds: float = ANSWER_WITHIN) -> AsyncIterator[asyncio.Timeout]:
    """Bound what happens inside to ``seconds`` and translate errors of Redis.

    Raises:
        PartDown: Redis did not answer in time, or refused.
    """
    try:
        async with asyncio.timeout(seconds) as timeout:
            yield timeout
    except (errors.RedisError, OSError, TimeoutError) as error:
        raise queue_down(error, url) from error

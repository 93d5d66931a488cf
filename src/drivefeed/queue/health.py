"""Whether a Redis is fit to carry queues. BullMQ checks none of this."""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any

from redis import exceptions as errors

from drivefeed.domain.errors import Part, PartDown
from drivefeed.queue.faults import address

if TYPE_CHECKING:
    from redis.asyncio import Redis

OLDEST = (6, 2)


async def faults_in(client: Redis, url: str) -> PartDown | None:
    """Return what makes this Redis unfit, or None.

    Raises:
        RedisError: it does not answer.
    """
    info = await client.info()
    where = address(url)
    version = str(info.get("redis_version", ""))
    if numbers_of(version) < OLDEST:
        return _down(
            f"Redis at {where} has version {version}, and the queues need 6.2 or newer (or "
            "Valkey); upgrade it."
        )
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction" and await may_configure(client):
        return _down(
            f"Redis at {where} throws keys away when its memory is full (maxmemory-policy "
            f"{policy}), and jobs would vanish or get stuck; set maxmemory-policy to noeviction."
        )
    if info.get("aof_enabled") and info.get("aof_last_write_status", "ok") != "ok":
        return _down(
            f"Redis at {where} could not write its append-only file; make room on its disk."
        )
    return None


async def warnings_in(client: Redis, url: str) -> list[str]:
    """Return a sentence for each setting that is risky but bearable.

    Raises:
        RedisError: it does not answer.
    """
    info: dict[str, Any] = await client.info()
    where = address(url)
    found = []
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy != "noeviction" and not await may_configure(client):
        found.append(
            f"Redis at {where} throws keys away when its memory is full (maxmemory-policy "
            f"{policy}) and does not let us see its configuration; ask its provider for "
            "noeviction."
        )
    if not info.get("aof_enabled"):
        found.append(
            f"Redis at {where} keeps no append-only file (appendonly no): after a crash of Redis "
            "jobs are sent again from the catalog, which costs time but loses nothing; set "
            "appendonly to yes."
        )
    return found


async def may_configure(client: Redis) -> bool:
    """Whether this Redis lets us see its configuration, and so lets its owner change it."""
    with contextlib.suppress(errors.ResponseError):
        await client.config_get("maxmemory-policy")
        return True
    return False


def numbers_of(version: str) -> tuple[int, ...]:
    """Return the first two numbers of a version; a hidden one is taken for recent."""
    found = re.findall(r"\d+", version)
    # A service that hides its version is taken for a recent one.
    return tuple(map(int, found[:2])) if found else OLDEST


def _down(sentence: str) -> PartDown:
    return PartDown(sentence, part=Part.QUEUE)

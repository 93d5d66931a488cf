"""Redis as a doctor sees it, and what failed last; asked once, told in parts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drivefeed.queue.connection import answering, producer_client
from drivefeed.queue.faults import address
from drivefeed.queue.health import OLDEST, may_configure, numbers_of
from drivefeed.queue.table import QUEUES

if TYPE_CHECKING:
    from redis.asyncio import Redis


@dataclass(frozen=True, slots=True)
class RedisState:
    """What was found of a Redis that answers.

    Attributes:
        where: its host and port, or the path of its socket.
        is_recent: whether its version has what the queues need.
        policy: its ``maxmemory-policy``.
        may_configure: whether it lets us see its configuration; providers often do not.
        aof: whether it keeps an append-only file.
        aof_failed: whether the last write to that file failed.
        used_bytes: memory in use.
        most_bytes: memory it may use; 0 for all there is.
        generation: the value of our sentinel key, or None where it is gone.
        counts: jobs by stage and state.
        paused: stages whose queues somebody paused on the board.
    """

    where: str
    version: str
    is_recent: bool
    policy: str
    may_configure: bool
    aof: bool
    aof_failed: bool
    used_bytes: int
    most_bytes: int
    generation: str | None
    counts: dict[str, dict[str, int]]
    paused: list[str]


async def examine(url: str, *, prefix: str) -> RedisState:
    """Ask a Redis how it is.

    Raises:
        PartDown: it does not answer, or refuses us.
    """
    client = producer_client(url)
    try:
        async with answering(url):
            return await _examined(client, url, prefix)
    finally:
        await client.aclose(close_connection_pool=True)


async def _examined(client: Redis, url: str, prefix: str) -> RedisState:
    found: dict[str, Any] = await client.info()
    counts, paused = await _counts(client, prefix)
    return RedisState(
        where=address(url),
        version=str(found.get("valkey_version") or found.get("redis_version") or ""),
        is_recent=numbers_of(str(found.get("redis_version", ""))) >= OLDEST,
        policy=str(found.get("maxmemory_policy", "noeviction")),
        may_configure=await may_configure(client),
        aof=bool(found.get("aof_enabled")),
        aof_failed=found.get("aof_last_write_status", "ok") != "ok",
        used_bytes=int(found.get("used_memory", 0)),
        most_bytes=int(found.get("maxmemory", 0)),
        generation=_text(await client.get(f"{prefix}:drivefeed:sentinel")),
        counts=counts,
        paused=paused,
    )


async def _counts(client: Redis, prefix: str) -> tuple[dict[str, dict[str, int]], list[str]]:
    pipe = client.pipeline(transaction=False)
    for stage in QUEUES:
        base = f"{prefix}:{stage.value}"
        pipe.llen(f"{base}:wait")
        pipe.zcard(f"{base}:prioritized")
        pipe.llen(f"{base}:active")
        pipe.zcard(f"{base}:delayed")
        pipe.zcard(f"{base}:failed")
        pipe.llen(f"{base}:paused")
        pipe.hexists(f"{base}:meta", "paused")
    answers = await pipe.execute()
    counts: dict[str, dict[str, int]] = {}
    paused = []
    for number, stage in enumerate(QUEUES):
        wait, prioritized, active, delayed, failed, held, is_paused = answers[
            number * 7 : number * 7 + 7
        ]
        counts[stage.value] = {
            "waiting": wait + prioritized + held,
            "active": active,
            "delayed": delayed,
            "failed": failed,
        }
        if is_paused:
            paused.append(stage.value)
    return counts, paused


async def newest_failed(url: str, *, prefix: str, limit: int) -> list[dict[str, str]]:
    """Return the failed jobs of all queues, the newest first: stage, reason and traceback.

    Raises:
        PartDown: Redis does not answer, or refuses us.
    """
    client = producer_client(url)
    try:
        async with answering(url):
            found: list[tuple[float, str, str]] = []
            for stage in QUEUES:
                key = f"{prefix}:{stage.value}:failed"
                newest: Any = await client.zrange(key, 0, limit - 1, desc=True, withscores=True)
                found += [(float(at), stage.value, str(job_id)) for job_id, at in newest]
            return [
                await _failed(client, prefix, stage_name, job_id)
                for _, stage_name, job_id in sorted(found, reverse=True)[:limit]
            ]
    finally:
        await client.aclose(close_connection_pool=True)


async def _failed(client: Redis, prefix: str, stage: str, job_id: str) -> dict[str, str]:
    key = f"{prefix}:{stage}:{job_id}"
    reason, trace = await client.hmget(key, ["failedReason", "stacktrace"])
    return {"stage": stage, "reason": _text(reason) or "", "traceback": _text(trace) or ""}


def _text(value: bytes | str | None) -> str | None:
    return value.decode() if isinstance(value, bytes) else value

"""Findings about Redis and about deliveries that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.amounts import duration_words
from drivefeed.services.checkups.finding import Finding, green, red, yellow

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from drivefeed.queue.examination import RedisState

WAITS_YELLOW_MS = 10 * 60_000
WAITS_RED_MS = 60 * 60_000
_FULL_PERCENT = 90


def redis_findings(state: RedisState, *, sent: bool) -> Iterator[Finding]:
    """Judge a Redis that answers.

    Args:
        sent: whether the catalog knows of deliveries that were sent to it.
    """
    yield _version(state)
    yield _policy(state)
    yield _persistence(state)
    yield _sentinel(state, sent=sent)
    if state.most_bytes and state.used_bytes * 100 > state.most_bytes * _FULL_PERCENT:
        words = f"Redis at {state.where} uses more than {_FULL_PERCENT} % of its memory."
        yield yellow("redis memory", words, "Raise maxmemory before it refuses new deliveries.")
    if state.paused:
        words = f"Handing out of jobs is paused for: {', '.join(state.paused)}."
        yield yellow("queue paused", words, "Resume these queues on Bull Board.")


def _version(state: RedisState) -> Finding:
    if state.is_recent:
        return green("queue", f"Redis or Valkey {state.version} at {state.where} answers.")
    words = f"Redis at {state.where} has version {state.version}; the queues need 6.2 or newer."
    return red("queue", words, "Upgrade it, or use Valkey.")


def _policy(state: RedisState) -> Finding:
    part = "redis policy"
    if state.policy == "noeviction":
        return green(part, "Evicts no keys.")
    words = f"Redis at {state.where} throws keys away when it is full ({state.policy})."
    if not state.may_configure:
        return yellow(part, words, "Ask its provider for maxmemory-policy noeviction.")
    remedy = (
        "Set 'maxmemory-policy noeviction' in its configuration, and until it restarts: "
        "redis-cli CONFIG SET maxmemory-policy noeviction."
    )
    return red(part, words, remedy)


def _persistence(state: RedisState) -> Finding:
    part = "redis persistence"
    if state.aof_failed:
        words = f"Redis at {state.where} could not write its append-only file."
        return red(part, words, "Make room on its disk.")
    if state.aof:
        return green(part, "Writes an append-only file.")
    words = (
        f"Redis at {state.where} keeps no append-only file: when it crashes, deliveries are sent "
        "again from the catalog, which costs time and loses nothing."
    )
    remedy = (
        "Set 'appendonly yes' in its configuration, and until it restarts: "
        "redis-cli CONFIG SET appendonly yes."
    )
    return yellow(part, words, remedy)


def _sentinel(state: RedisState, *, sent: bool) -> Finding:
    part = "redis sentinel"
    if state.generation is not None:
        return green(part, "Was not emptied since drivefeed first used it.")
    if not sent:
        return green(part, "Nothing was sent yet; the sentinel key is set at the first start.")
    words = f"Redis at {state.where} was emptied: our sentinel key is gone, and deliveries with it."
    remedy = (
        "Let 'drivefeed up' run: it sends everything again by itself. Find out who empties this "
        "Redis; it should be ours alone, or be shared by prefix without FLUSHALL."
    )
    return yellow(part, words, remedy)


def delivery_findings(
    waiting: Mapping[str, tuple[int, int]], *, now: int, is_running: bool
) -> Iterator[Finding]:
    """Judge how long deliveries wait.

    Args:
        waiting: by stage, how many are due and since when the oldest is.
        is_running: whether a daemon runs; without one, nothing can move.
    """
    part = "deliveries"
    if not waiting:
        yield green(part, "Nothing that is due waits.")
        return
    stage, (_, since) = min(waiting.items(), key=lambda pair: pair[1][1])
    count = sum(number for number, _ in waiting.values())
    late = max(0, now - since)
    words = f"{count} due; the oldest waits in '{stage}' for {duration_words(late // 1000 * 1000)}."
    if not is_running:
        yield green(part, f"{words} They move when a daemon runs.")
    elif late > WAITS_YELLOW_MS:
        colour = red if late > WAITS_RED_MS else yellow
        remedy = (
            "Look on Bull Board whether the queue is paused, and in the log for errors of its "
            "workers; raise concurrency for the stage if it is busy all the time."
        )
        yield colour(part, words, remedy)
    else:
        yield green(part, words)

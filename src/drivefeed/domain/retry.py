"""Backoff with jitter, and intervals that back off. Pure: the randomness is handed in."""

from __future__ import annotations


def backoff_ms(
    attempt: int, *, fraction: float, first_ms: int = 1_000, longest_ms: int = 60_000
) -> int:
    """Return how long to wait after failed attempt number ``attempt`` (1, 2, …).

    Doubles from ``first_ms`` to ``longest_ms``; ``fraction`` in [0, 1) takes up to half of it
    away, so that many failures of one moment do not come back in one moment.
    """
    exponent = min(max(attempt, 1) - 1, 30)
    whole = min(first_ms * 2**exponent, longest_ms)
    return int(whole * (1 - fraction / 2))


def poll_interval_ms(polls: int, *, first_ms: int = 500, longest_ms: int = 30_000) -> int:
    """Return how long to wait before the next poll of a backend job after ``polls`` polls."""
    return int(min(first_ms * 1.5 ** min(max(polls, 0), 60), longest_ms))

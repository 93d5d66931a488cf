"""How much is done at a time, how often it is tried, and how often drives are asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.pace import Pace
from drivefeed.queue.table import QUEUES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.ports import Stage
    from drivefeed.settings import Settings

_LEAST_WINDOW = 20
_WINDOW_PER_WORKER = 8


def pace_of(settings: Settings) -> Pace:
    """Return how often drives are asked for changes. Looking takes half of the budget at most."""
    told = settings.notifications
    return Pace(
        slowest_ms=round(settings.poll_slowest_seconds * 1000),
        told_ms=round(told.poll_seconds * 1000),
        revisit_ms=round(told.revisit_seconds * 1000),
        looks_a_minute=settings.ru_per_minute * settings.ru_share / 2,
    )


def concurrency_of(settings: Settings) -> dict[Stage, int]:
    """Return how many jobs of each stage run at a time in this process."""
    return {
        stage: settings.concurrency.get(stage, spec.concurrency) for stage, spec in QUEUES.items()
    }


def attempts_of(settings: Settings) -> dict[Stage, int]:
    """Return how many attempts a delivery of each stage has."""
    return {stage: settings.attempts.get(stage, spec.attempts) for stage, spec in QUEUES.items()}


def windows_of(concurrency: Mapping[Stage, int]) -> dict[Stage, int]:
    """Return how many jobs of each stage may be in the queue and not yet ended."""
    return {
        stage: max(_LEAST_WINDOW, _WINDOW_PER_WORKER * count)
        for stage, count in concurrency.items()
    }

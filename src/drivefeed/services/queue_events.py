"""What happens in the queues, counted and said."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from drivefeed.telemetry import QUEUE_EVENTS, QUEUE_WAIT_SECONDS, log

if TYPE_CHECKING:
    from drivefeed.queue.events import QueueEvent

_SAY_AGAIN_SECONDS = 10.0

_log = log("daemon")


class QueueEvents:
    """Counts what happens in the queues, and says what goes wrong once in a while."""

    def __init__(self) -> None:
        self._said: dict[tuple[str, str], float] = {}

    def __call__(self, event: QueueEvent) -> None:
        """Take one event."""
        QUEUE_EVENTS.labels(event.stage, event.kind).inc()
        if event.waited_ms is not None:
            QUEUE_WAIT_SECONDS.labels(event.stage).observe(event.waited_ms / 1000)
        if event.kind in {"stalled", "error"} and self._is_news(event):
            _log.warning(
                f"queue_{event.kind}", stage=event.stage, job_id=event.job_id, detail=event.detail
            )

    def _is_news(self, event: QueueEvent) -> bool:
        key = (event.stage, event.kind)
        now = time.monotonic()
        if now - self._said.get(key, -_SAY_AGAIN_SECONDS) < _SAY_AGAIN_SECONDS:
            return False
        self._said[key] = now
        return True

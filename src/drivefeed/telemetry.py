"""Logs and metrics: one vocabulary of events, one id through all stages."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import structlog
from prometheus_client import Counter, Gauge, Histogram

from drivefeed.domain.redact import redact
from drivefeed.domain.visible import visible_lines

if TYPE_CHECKING:
    from collections.abc import MutableMapping
    from typing import TextIO

_CODES = frozenset({"event", "level", "timestamp", "room", "stage", "outcome", "subject_id"})
"""Keys whose values are words and ids of ours."""

STAGE_SECONDS = Histogram(
    "drivefeed_stage_seconds",
    "How long one run of a stage took.",
    ["stage", "outcome"],
    buckets=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800),
)
QUEUE_WAIT_SECONDS = Histogram(
    "drivefeed_queue_wait_seconds",
    "From the time a stage was due until a worker took it.",
    ["stage"],
    buckets=(0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1800),
)
ATTEMPTS_FAILED = Counter(
    "drivefeed_attempts_failed_total", "Attempts at a stage that failed.", ["stage"]
)
QUEUE_EVENTS = Counter(
    "drivefeed_queue_events_total", "What happened to jobs and workers.", ["stage", "event"]
)
BUDGET_UNITS = Gauge(
    "drivefeed_graph_resource_units",
    "Microsoft's resource units of an app in a tenant: used, and what we allow ourselves.",
    ["app", "window", "kind"],
)
BUDGET_CLOSED_SECONDS = Gauge(
    "drivefeed_graph_closed_seconds", "For how long Microsoft wants to be left alone.", ["app"]
)
BUDGET_WAITING = Gauge(
    "drivefeed_graph_requests_waiting", "Requests that wait for their turn.", ["app", "lane"]
)
BREAKER_OPEN = Gauge("drivefeed_breaker_open", "1 while a part is considered down.", ["part"])
LOOP_STALL_SECONDS = Gauge(
    "drivefeed_event_loop_longest_stall_seconds",
    "The longest time the event loop did not come round since the start.",
)


def configure_logs(*, json: bool, level: str = "info", stream: TextIO | None = None) -> None:
    """Send structured logs to ``stream`` (standard error by default).

    Args:
        json: one JSON object a line, for machines; otherwise aligned text, for people.
        level: the least severe level that is shown.
    """
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _leave_out_none,
    ]
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(colors=(stream or sys.stderr).isatty())
    )
    structlog.configure(
        processors=[
            *shared,
            structlog.processors.format_exc_info,
            _without_secrets,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping()[level.upper()]
        ),
        logger_factory=structlog.PrintLoggerFactory(
            file=cast("TextIO", _Forgiving(stream or sys.stderr))
        ),
        cache_logger_on_first_use=False,
    )
    others = logging.StreamHandler(stream or sys.stderr)
    others.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.add_logger_name, *shared, _as_words_of_a_library],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.format_exc_info,
                _without_secrets,
                renderer,
            ],
        )
    )
    logging.basicConfig(level=logging.WARNING, handlers=[others])
    logging.captureWarnings(capture=True)
    # It warns of a tick that is left out because the last one still runs, which is what we ask of
    # it: on a busy machine that would be a line a second.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)


class _Forgiving:
    """A stream that loses lines where work must not stop for a log.

    The disk may be full, and what ends last may speak when the stream is closed already.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write, or lose the line."""
        with suppress(OSError, ValueError):
            return self._stream.write(text)
        return 0

    def flush(self) -> None:
        """Flush as far as there is room."""
        with suppress(OSError, ValueError):
            self._stream.flush()


def _leave_out_none(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    return {key: value for key, value in event.items() if value is not None}


def _as_words_of_a_library(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """A library's message is a sentence and no code: it may hold whatever the library was given."""
    return {**event, "event": "library", "words": event["event"]}


def _without_secrets(
    _logger: Any, _method: str, event: MutableMapping[str, Any]
) -> MutableMapping[str, Any]:
    """Whatever an error says, nobody reads a secret in the log, and no terminal obeys it."""
    return {
        key: visible_lines(redact(value)) if isinstance(value, str) and key not in _CODES else value
        for key, value in event.items()
    }


def keep_logs_apart() -> None:
    """Have logs go to stderr unless told otherwise: what a command prints is its answer."""
    if not structlog.is_configured():
        configure_logs(json=False, level="warning")


def log(room: str) -> Any:
    """Return a logger that names the room it speaks from."""
    return structlog.get_logger(room=room)

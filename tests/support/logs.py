"""What commands set of the logs of their process, undone where the process goes on."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def logging_as_before() -> Iterator[None]:
    """Commands let logs go to their standard error, which is closed when they have ended."""
    configured = structlog.get_config() if structlog.is_configured() else None
    root = logging.getLogger()
    handlers = root.handlers[:]
    try:
        yield
    finally:
        root.handlers[:] = handlers
        logging.captureWarnings(capture=False)
        if configured is None:
            structlog.reset_defaults()
        else:
            structlog.configure(**configured)

"""What holds for all tests."""

from __future__ import annotations

import gc
import os
import signal
from typing import TYPE_CHECKING

# Hypothesis's plugin imports it while pytest sums up, if nobody did before. Python 3.11 sometimes
# fails to compile it there ("AST constructor recursion depth mismatch") when the collector runs.
from hypothesis import HealthCheck, settings

from support.shared_statements import share_statements

share_statements()

import pytest  # noqa: E402 - after it

from support.catalogs import catalog_url  # noqa: E402 - it loads drivefeed
from support.logs import logging_as_before  # noqa: E402
from support.postgres import own_postgres, postgres_server, postgres_url  # noqa: E402
from support.trust import read_authorities_once  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["catalog_url", "own_postgres", "postgres_server", "postgres_url"]

# A busy machine must not fail a test: no example has a deadline, and slow ones are no defect. In
# CI the examples are the same each time; elsewhere they are new ones.
settings.register_profile(
    "drivefeed",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=bool(os.environ.get("CI")),
)
settings.load_profile("drivefeed")

read_authorities_once()

# A shell that starts the tests in its background lets them ignore Ctrl-C, and so all that they
# start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# What is loaded and collected stays until the end: looking through it again and again takes a tenth
# of the time of collecting, and some of that of each test.
gc.set_threshold(50_000)


def pytest_collection_finish() -> None:
    """Leave it out of the collections that follow."""
    gc.freeze()


@pytest.fixture
def hangup_taken() -> Iterator[None]:
    """Let programs be ended by the end of their terminal, though the tests may run under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """No test is deaf to logs because a command of another one had them left out."""
    with logging_as_before():
        yield

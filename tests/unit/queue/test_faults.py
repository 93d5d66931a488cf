from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from redis import exceptions as errors

from drivefeed.domain.errors import Part
from drivefeed.queue import faults, health
from drivefeed.queue.connection import worker_url
from drivefeed.queue.faults import queue_down, trace_of

if TYPE_CHECKING:
    from pathlib import Path

URL = "redis://user:hunter2@somewhere:6380/1?socket_timeout=5"


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (errors.AuthenticationError("WRONGPASS"), "refuses our user or password"),
        (errors.BusyLoadingError("x"), "loading"),
        (errors.OutOfMemoryError("x"), "full"),
        (errors.ResponseError("Command # 1 caused error: ('OOM command not allowed',)"), "full"),
        (errors.ResponseError("Command # 1 caused error: ('MISCONF Errors writing',)"), "disk"),
        (errors.ReadOnlyError("x"), "read-only replica"),
        (errors.TimeoutError("x"), "in time"),
        (TimeoutError(), "in time"),
        (errors.ConnectionError("Error 111 to redis://u:hunter2@h"), "cannot be reached"),
        (OSError(113, "No route to host"), "No route to host"),
        (errors.ResponseError("ERR odd"), "ERR odd"),
    ],
)
def test_each_fault_is_a_sentence(error: BaseException, words: str) -> None:
    down = queue_down(error, URL)
    assert words in str(down)
    assert "somewhere:6380" in str(down)
    assert "hunter2" not in str(down)
    assert down.part is Part.QUEUE


def test_localhost_in_a_container_is_pointed_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(faults, "_CONTAINER_MARK", tmp_path)
    error = errors.ConnectionError("refused")
    assert "container" in str(queue_down(error, "redis://localhost:6379"))
    assert "container" not in str(queue_down(error, URL))
    monkeypatch.setattr(faults, "_CONTAINER_MARK", tmp_path / "absent")
    assert "container" not in str(queue_down(error, "redis://localhost:6379"))


def test_a_trace_is_bounded_and_keeps_its_end() -> None:
    def deep(n: int) -> None:
        if n:
            deep(n - 1)
        raise ValueError("the end " + "x" * 9000)

    with pytest.raises(ValueError, match="the end") as caught:
        deep(200)
    text = trace_of(caught.value)
    assert len(text) < 6_100
    assert "the end" in text


def test_the_workers_url_wins_over_short_timeouts_and_keeps_the_rest() -> None:
    url = worker_url("rediss://u:p%40@h:1/2?socket_timeout=5&ssl_cert_reqs=none")
    assert url.startswith("rediss://u:p%40@h:1/2?")
    assert "socket_timeout=30" in url
    assert "ssl_cert_reqs=none" in url
    assert "socket_timeout=5" not in url.replace("socket_connect_timeout=5", "")


class OldServer:
    """Stands for a Redis that can't be installed here any more."""

    def __init__(self, **facts: Any) -> None:
        self.facts = facts

    async def info(self) -> dict[str, Any]:
        return self.facts


@pytest.mark.parametrize("version", ["6.0.16", "5.0.0", "3.2.1"])
async def test_an_old_server_is_refused(version: str) -> None:
    found = await health.faults_in(OldServer(redis_version=version), URL)  # type: ignore[arg-type]
    assert version in str(found)
    assert "6.2" in str(found)


@pytest.mark.parametrize("version", ["6.2.0", "7.2.4", "10.0.0", "255.255.255", ""])
async def test_a_recent_one_or_one_that_does_not_tell_is_not(version: str) -> None:
    assert await health.faults_in(OldServer(redis_version=version), URL) is None  # type: ignore[arg-type]

"""``health``: exit codes for whoever restarts what is ill."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.cli import health
from support.commands import run_command

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

WELL = {"status": "ok", "stuck": {}, "down": {}}
WAITS = WELL | {"down": {"queue": "Redis does not answer."}}
STUCK = WELL | {"status": "stuck", "stuck": {"relay": "The relay has not turned for 80 seconds."}}


@contextmanager
def daemon_that_says(folder: Path, words: dict[str, Any] | None) -> Iterator[None]:
    """Answer one question on a socket as a daemon does; None for one whose loop is stuck."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if words is None:
            await over.wait()
        body = json.dumps(words).encode()
        status = b"200 OK" if words and words["status"] == "ok" else b"503 Service Unavailable"
        writer.write(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))
        await writer.drain()
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_unix_server(answer, folder / "door.sock")
        ready.set()
        async with server:
            await over.wait()

    ready, over, loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(10)
    (folder / "daemon.json").write_text(json.dumps({"socket": str(folder / "door.sock")}))
    try:
        yield
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


@pytest.mark.parametrize(
    ("says", "options", "code", "words"),
    [
        (WELL, [], 0, "everything of it turns"),
        (WELL, ["--strict"], 0, "everything of it turns"),
        (WAITS, [], 0, "Redis does not answer."),
        (WAITS, ["--strict"], 1, "Redis does not answer."),
        (STUCK, [], 1, "The relay has not turned"),
        (None, [], 1, "does not answer within"),
    ],
)
def test_what_the_daemon_says_decides(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    says: dict[str, Any] | None,
    options: list[str],
    code: int,
    words: str,
) -> None:
    monkeypatch.setattr(health, "ANSWER_SECONDS", 5.0 if says else 0.3)
    with daemon_that_says(tmp_path, says):
        done = run_command("--data", str(tmp_path), "health", *options, cwd=tmp_path, ok=(code,))
    assert words in " ".join(done.stdout.split())


def test_where_no_daemon_runs_the_answer_is_no(tmp_path: Path) -> None:
    done = run_command("--data", str(tmp_path), "health", "--json", cwd=tmp_path, ok=(1,))
    assert json.loads(done.stdout)["status"] == "absent"

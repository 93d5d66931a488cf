"""uvicorn's server beside other work: told to end, and otherwise asleep."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from drivefeed.web import quiet_server
from drivefeed.web.quiet_server import QuietServer

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from starlette.requests import Request


async def _answer(_: Request) -> PlainTextResponse:
    return PlainTextResponse("here")


def _server(path: Path) -> QuietServer:
    app = Starlette(routes=[Route("/", _answer)])
    return QuietServer(uvicorn.Config(app, uds=str(path), log_config=None, lifespan="off"))


async def _started(server: QuietServer) -> asyncio.Task[None]:
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(20):
        while not server.started:  # noqa: ASYNC110 - uvicorn has no event for it
            await asyncio.sleep(0.01)
    return serving


async def test_it_answers_with_the_date_and_ends_when_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # So long that only being told can end it.
    monkeypatch.setattr(quiet_server, "_TICK_SECONDS", 3600.0)
    server = _server(tmp_path / "door")
    serving = await _started(server)
    transport = httpx.AsyncHTTPTransport(uds=str(tmp_path / "door"))
    async with httpx.AsyncClient(transport=transport) as client:
        answer = await client.get("http://here/")
    assert (answer.text, "date" in answer.headers) == ("here", True)
    assert not server.should_exit
    server.should_exit = True
    async with asyncio.timeout(20):
        await serving


async def test_the_date_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quiet_server, "_TICK_SECONDS", 0.02)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    server = _server(tmp_path / "door")
    serving = await _started(server)
    before = list(server.server_state.default_headers)
    now += 100
    async with asyncio.timeout(20):
        while server.server_state.default_headers == before:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    server.should_exit = True
    await serving


async def test_one_that_is_told_before_it_serves_ends_at_once(tmp_path: Path) -> None:
    server = _server(tmp_path / "door")
    server.should_exit = True
    async with asyncio.timeout(20):
        await server.serve()

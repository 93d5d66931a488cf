"""Connections that say nothing, drip, take nothing, or talk nonsense."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from drivefeed.web import connections

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from unit.web.conftest import House


@asynccontextmanager
async def line_to(
    house: House, words: bytes = b""
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    parts = urlsplit(house.page.url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(words)
    try:
        yield reader, writer
    finally:
        writer.close()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """Read to the end of a connection, which has to come."""
    async with asyncio.timeout(20):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


async def test_half_open_connections_make_room(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_CONNECTIONS", 4)
    async with house.client(house.key) as client:
        assert (await client.get("/healthz")).status_code == 200
        assert house.page._server is not None
        house.page._server.config.limit_concurrency = 8
        lines = [line_to(house, b"GET / HTTP/1.1\r\n") for _ in range(20)]
        held = [await line.__aenter__() for line in lines]
        assert (await client.get("/healthz")).status_code == 200
        assert (await house.get("/v1/")).status_code == 200
        for reader, _ in held[:12]:
            assert await ended(reader) == b""
        for line in lines:
            await line.__aexit__(None, None, None)


async def test_the_head_of_a_request_comes_in_time_or_not_at_all(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEAD_SECONDS", 0.2)
    async with line_to(house) as (silent, _), line_to(house) as (reader, writer):

        async def drip() -> None:
            while True:
                writer.write(b"G")
                await asyncio.sleep(0.01)

        dripping = asyncio.create_task(drip())
        assert await ended(reader) == b""
        assert await ended(silent) == b""
        dripping.cancel()


async def test_who_takes_nothing_is_let_go(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "STALL_SECONDS", 0.2)
    ask = b"GET /v1/openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 2_000
    async with line_to(house, ask) as (_, writer):

        async def ask_on() -> None:
            while True:
                writer.write(ask)
                await writer.drain()
                await asyncio.sleep(0.02)

        with pytest.raises(ConnectionError):
            await asyncio.wait_for(ask_on(), 60)


async def test_nonsense_in_the_middle_of_an_answer_is_no_defect_of_ours(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    ask = (
        "GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
        f"Authorization: Bearer {house.key.text}\r\n\r\n"
    )
    async with line_to(house, ask.encode()) as (reader, writer):
        await reader.readuntil(b"retry:")
        with caplog.at_level(logging.ERROR):
            writer.write(b"no chunk\r\n")
            await ended(reader)
    async with line_to(house, b"\x00nonsense\r\n\r\n") as (reader, _):
        assert (await ended(reader)).startswith(b"HTTP/1.1 400 ")
    assert [one.message for one in caplog.records if one.levelno >= logging.ERROR] == []

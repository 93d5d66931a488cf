"""A TCP proxy that can be shut: connections stay, and nothing comes through."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PIECE = 64 * 1024


class Valve:
    """A running proxy.

    Attributes:
        url: the server's URL, by way of the proxy.
    """

    def __init__(self, upstream: str) -> None:
        self._upstream = urlsplit(upstream)
        self._is_open = asyncio.Event()
        self._is_open.set()
        self.url = ""

    def shut(self) -> None:
        """Hold back what comes, from both sides."""
        self._is_open.clear()

    def open(self) -> None:
        """Let through what was held back, and what comes."""
        self._is_open.set()

    def listens_at(self, port: int) -> None:
        """Make the URL."""
        parts = self._upstream
        place = parts.netloc.rpartition("@")[0]
        self.url = parts._replace(netloc=f"{place}@127.0.0.1:{port}").geturl()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            there = await asyncio.open_connection(self._upstream.hostname, self._upstream.port)
            await asyncio.gather(self._pour(reader, there[1]), self._pour(there[0], writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _pour(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while piece := await reader.read(_PIECE):
                await self._is_open.wait()
                writer.write(piece)
                await writer.drain()
        writer.close()


@asynccontextmanager
async def running_valve(upstream: str) -> AsyncIterator[Valve]:
    """Run a valve in front of the server of a URL while the block lasts."""
    valve = Valve(upstream)
    server = await asyncio.start_server(valve.serve, "127.0.0.1", 0)
    valve.listens_at(server.sockets[0].getsockname()[1])
    try:
        yield valve
    finally:
        valve.open()
        server.close()

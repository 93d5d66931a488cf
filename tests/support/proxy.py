"""A forward proxy on loopback that writes down which hosts it was asked for.

It resolves every name to this machine, so that what arrives at a name of its own came through it.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

_MOST = 64 * 1024


class Proxy:
    """A running proxy.

    Attributes:
        asked: ``CONNECT host:port`` and ``GET host:port``, in the order of requests.
        login: ``user:password`` that is demanded, or empty.
    """

    def __init__(self, login: str = "") -> None:
        self.login = login
        self.asked: list[str] = []
        self.port = 0

    @property
    def url(self) -> str:
        login = f"{self.login}@" if self.login else ""
        return f"http://{login}127.0.0.1:{self.port}"

    @property
    def hosts(self) -> set[str]:
        """The names that were asked for, without ports."""
        return {one.split()[1].rpartition(":")[0] for one in self.asked}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        method, target, _ = head.split(b"\r\n", 1)[0].decode().split()
        expected = b"basic " + b64encode(self.login.encode()).lower()
        if self.login and expected not in head.lower():
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        if method == "CONNECT":
            port = int(target.rpartition(":")[2])
            self.asked.append(f"CONNECT {target}")
            there = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            url = urlsplit(target)
            self.asked.append(f"{method} {url.hostname}:{url.port or 80}")
            there = await asyncio.open_connection("127.0.0.1", url.port or 80)
            path = url.path or "/"
            path += f"?{url.query}" if url.query else ""
            there[1].write(head.replace(target.encode(), path.encode(), 1))
        await asyncio.gather(_pour(reader, there[1]), _pour(there[0], writer))


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass on what comes until it ends; then end the other side as well."""
    with suppress(OSError):
        while piece := await reader.read(_MOST):
            writer.write(piece)
            await writer.drain()
    with suppress(OSError):
        if writer.can_write_eof():
            writer.write_eof()
        else:
            writer.close()


@asynccontextmanager
async def running_proxy(login: str = "") -> AsyncIterator[Proxy]:
    """Run a proxy on a free port while the block lasts."""
    proxy = Proxy(login)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()


@asynccontextmanager
async def tls_front(port: int, context: ssl.SSLContext) -> AsyncIterator[int]:
    """Speak TLS in front of a plain server on ``port``; yields the port of the TLS side."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(_pour(reader, there[1]), _pour(there[0], writer))
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()

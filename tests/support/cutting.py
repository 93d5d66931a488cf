"""A TCP proxy that loses replies: the request arrives, is done, and nobody hears of it."""

from __future__ import annotations

import asyncio
import re
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass
class Cutting:
    """A running proxy.

    Attributes:
        cuts: says of a request (method and address, body) whether its reply is lost.
        lost: the requests whose replies were lost, as ``METHOD address``.
    """

    upstream: int
    cuts: Callable[[str, bytes], bool]
    port: int = 0
    lost: list[str] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            there_in, there_out = await asyncio.open_connection("127.0.0.1", self.upstream)
            try:
                while await self._one(reader, writer, there_in, there_out):
                    pass
            finally:
                there_out.close()
        writer.close()

    async def _one(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        there_in: asyncio.StreamReader,
        there_out: asyncio.StreamWriter,
    ) -> bool:
        head, body = await _message(reader)
        there_out.write(head + body)
        # The backend has done it when its whole reply is here.
        reply = b"".join(await _message(there_in))
        asked = head.split(b" HTTP", 1)[0].decode()
        if self.cuts(asked, body):
            self.lost.append(asked)
            writer.transport.abort()
            return False
        writer.write(reply)
        await writer.drain()
        return True


async def _message(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    found = _LENGTH.search(head)
    return head, await reader.readexactly(int(found[1]) if found else 0)


@asynccontextmanager
async def cutting(upstream: int, cuts: Callable[[str, bytes], bool]) -> AsyncIterator[Cutting]:
    """Stand before a server on ``upstream`` while the block lasts."""
    proxy = Cutting(upstream, cuts)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()

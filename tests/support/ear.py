"""An endpoint of notifications on loopback: answers handshakes, keeps what it is told."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@dataclass
class Ear:
    """What arrived.

    Attributes:
        url: where it listens, without a path.
        handshakes: paths that were asked for their echo.
        calls: paths with each notification.
        echoes: whether handshakes are answered as they should be.
    """

    url: str = ""
    handshakes: list[str] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    echoes: bool = True

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked = urlsplit(head.split(" ")[1])
        length = next(
            int(line.partition(":")[2])
            for line in [*head.split("\r\n"), "content-length: 0"]
            if line.lower().startswith("content-length:")
        )
        body = await reader.readexactly(length)
        tokens = parse_qs(asked.query).get("validationToken")
        if tokens:
            self.handshakes.append(asked.path)
            answer = tokens[0].encode() if self.echoes else b"ok"
        else:
            self.calls += [(asked.path, one) for one in json.loads(body)["value"]]
            answer = b""
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(answer), answer)
        )
        await writer.drain()
        writer.close()


@asynccontextmanager
async def listening() -> AsyncIterator[Ear]:
    """Listen while the block lasts."""
    ear = Ear()
    server = await asyncio.start_server(ear.take, "127.0.0.1", 0)
    async with server:
        ear.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        yield ear

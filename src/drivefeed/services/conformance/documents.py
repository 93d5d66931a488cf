"""The kit's own documents, served to the backend: tiny texts, some of which are held back."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_LONGEST_HOLD: Final = 20.0
_READ_SECONDS: Final = 10.0


@dataclass
class Served:
    """One document; its bytes are sent once it is released."""

    url: str
    body: bytes
    may_go: asyncio.Event = field(default_factory=asyncio.Event)
    asked: asyncio.Event = field(default_factory=asyncio.Event)

    def release(self) -> None:
        """Send the bytes to whoever waits for them, and from now on at once."""
        self.may_go.set()


class Documents:
    """Documents by their names, at one address."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._served: dict[str, Served] = {}

    def put(self, name: str, body: bytes, *, held: bool = False) -> Served:
        """Serve a document; ``held`` keeps its bytes back until it is released."""
        made = Served(f"{self._base}/{name}", body)
        if not held:
            made.release()
        self._served[f"/{name}"] = made
        return made

    def release_all(self, body: bytes | None = None) -> None:
        """Let go of everything that is held back; of ``body`` in its place, if there is one."""
        for one in self._served.values():
            one.body = one.body if body is None else body
            one.release()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request and close the connection."""
        with suppress(OSError, ValueError, asyncio.IncompleteReadError, TimeoutError):
            async with asyncio.timeout(_READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n", 1)[0].decode("ascii").split()
            one = self._served.get(target)
            if one is None:
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            else:
                one.asked.set()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LONGEST_HOLD):
                        await one.may_go.wait()
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n"
                    b"Connection: close\r\n"
                    + f"Content-Length: {len(one.body)}\r\n\r\n".encode()
                    + (one.body if method == "GET" else b"")
                )
            await writer.drain()
        writer.close()


@asynccontextmanager
async def serving(host: str, port: int = 0, *, base: str = "") -> AsyncIterator[Documents]:
    """Serve documents while the block lasts.

    Args:
        host: the address to bind.
        base: where the backend reaches it, if that is another address.

    Raises:
        OSError: the address cannot be bound.
    """
    found: list[Documents] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await found[0].answer(reader, writer)

    server = await asyncio.start_server(answer, host, port)
    bound = server.sockets[0].getsockname()[1]
    name = f"[{host}]" if ":" in host else host
    found.append(Documents(base.rstrip("/") or f"http://{name}:{bound}"))
    try:
        yield found[0]
    finally:
        server.close()

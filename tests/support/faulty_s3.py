"""A proxy before an S3 server that fails in one way or another, request by request."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_PIECE = 64 * 1024
_ANSWER = (
    "HTTP/1.1 {status}\r\nContent-Type: application/xml\r\nContent-Length: {size}\r\n"
    "Connection: close\r\n\r\n{body}"
)
_ERROR = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>No.</Message></Error>"


class Way(StrEnum):
    """How the service behaves."""

    WELL = "well"
    DOWN = "down"
    HANGS = "hangs"
    SLOW = "slow"
    FORBIDS = "403"
    SLOW_DOWN = "SlowDown"
    DAMAGES = "wrong checksum"
    BREAKS = "broken in the middle"


class FaultyS3:
    """Stands before a server on loopback; ``way`` may be set at any time.

    Attributes:
        requests: how many came, whatever became of them.
        slow_seconds: what a slow answer takes.
    """

    def __init__(self, port: int) -> None:
        self.way = Way.WELL
        self.slow_seconds = 0.7
        self.requests = 0
        self.port = 0
        self._behind = port
        self._open: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def turn(self, way: Way) -> None:
        """Behave in another way from now on; connections that are open are cut."""
        self.way = way
        for writer in list(self._open):
            writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        there: asyncio.StreamWriter | None = None
        answers: asyncio.Task[None] | None = None
        try:
            while head := await _head(reader):
                self.requests += 1
                if not await self._may_pass(writer):
                    return
                if there is None:
                    back, there = await asyncio.open_connection("127.0.0.1", self._behind)
                    answers = asyncio.create_task(_pour(back, writer))
                there.write(head)
                await self._pass_body(reader, there, _length(head))
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(writer)
            for one in (writer, there):
                if one is not None:
                    one.close()
            if answers is not None:
                answers.cancel()

    async def _may_pass(self, writer: asyncio.StreamWriter) -> bool:
        match self.way:
            case Way.DOWN:
                writer.transport.abort()
            case Way.HANGS:
                await asyncio.Event().wait()
            case Way.FORBIDS:
                await _refuse(writer, "403 Forbidden", "AccessDenied")
            case Way.SLOW_DOWN:
                await _refuse(writer, "503 Slow Down", "SlowDown")
            case Way.SLOW:
                await asyncio.sleep(self.slow_seconds)
                return True
            case _:
                return True
        return False

    async def _pass_body(
        self, reader: asyncio.StreamReader, there: asyncio.StreamWriter, size: int
    ) -> None:
        first = True
        while size:
            piece = bytearray(await reader.read(min(size, _PIECE)))
            if not piece:
                raise ConnectionError
            size -= len(piece)
            if first and self.way is Way.DAMAGES:
                piece[0] ^= 1
            if self.way is Way.BREAKS:
                raise ConnectionError
            first = False
            there.write(piece)
            await there.drain()


async def _head(reader: asyncio.StreamReader) -> bytes:
    with suppress(asyncio.IncompleteReadError):
        return await reader.readuntil(b"\r\n\r\n")
    return b""


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


async def _refuse(writer: asyncio.StreamWriter, status: str, code: str) -> None:
    body = _ERROR.format(code=code)
    writer.write(_ANSWER.format(status=status, size=len(body), body=body).encode())
    await writer.drain()


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await reader.read(_PIECE):
            writer.write(piece)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def faulty_s3(port: int) -> AsyncIterator[FaultyS3]:
    """Run a proxy before the S3 server on ``port`` while the block lasts."""
    proxy = FaultyS3(port)
    server = await asyncio.start_server(proxy.serve, "127.0.0.1", 0, limit=1 << 20)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        proxy.turn(Way.DOWN)
        server.close()

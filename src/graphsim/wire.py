"""The body of an answer on its way out, where the faults of the wire strike."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from graphsim.faults import Fault
    from graphsim.requestlog import Entry

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class DroppedError(Exception):
    """The connection was cut on purpose, or the client has gone: nothing more to say."""


class Wire:
    """Sends one body over one connection.

    Args:
        receive: ASGI.
        send: ASGI.
        transport: The connection, for faults that cut it; ``None`` where it is unknown.
        entry: Counts the bytes.
    """

    def __init__(
        self, receive: Receive, send: Send, transport: asyncio.Transport | None, entry: Entry
    ) -> None:
        self._receive = receive
        self._send = send
        self._transport = transport
        self._entry = entry
        self._drip: Fault | None = None

    async def body(
        self, body: bytes | AsyncIterator[bytes], cut: Fault | None, drip: Fault | None
    ) -> None:
        """Send a body to its end, or to where a fault ends it.

        Args:
            body: What to send.
            cut: Where it is truncated, reset or stalled.
            drip: How slowly it goes.

        Raises:
            DroppedError: It ended early.
        """
        cut = msgspec.structs.replace(cut) if cut else None
        self._drip = drip
        if isinstance(body, bytes):
            await self._write(body, cut)
        else:
            async for block in body:
                await self._write(block, cut)
        if cut is not None and cut.after >= 0:
            await self._strike(cut)

    async def _write(self, block: bytes, cut: Fault | None) -> None:
        if cut is not None and 0 <= cut.after < self._entry.bytes + len(block):
            at = cut.after - self._entry.bytes
            await self._out(block[:at])
            await self._strike(cut)
            block = block[at:]
        await self._out(block)

    async def _out(self, block: bytes) -> None:
        size = max(self._drip.size if self._drip else len(block), 1)
        for at in range(0, len(block), size):
            if self._transport is not None and self._transport.is_closing():
                raise DroppedError
            piece = block[at : at + size]
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
            self._entry.bytes += len(piece)
            if self._drip is not None:
                await asyncio.sleep(self._drip.seconds)

    async def _strike(self, cut: Fault) -> None:
        if cut.kind != "stall":
            await self.drop(reset=cut.kind == "reset")
        cut.after = -1
        await asyncio.sleep(cut.seconds)

    async def drop(self, *, reset: bool = False) -> None:
        """Close or reset the connection although the answer is not complete.

        Raises:
            DroppedError: Always.
        """
        if self._transport is not None:
            if reset:
                while self._transport.get_write_buffer_size():  # noqa: ASYNC110 - no event for it
                    await asyncio.sleep(0.005)
                sock = self._transport.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._transport.abort()
            else:
                self._transport.close()
            while (await self._receive())["type"] != "http.disconnect":
                pass
        raise DroppedError

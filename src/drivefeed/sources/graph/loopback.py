"""The door on this machine through which a browser brings the answer to a sign-in.

It listens on 127.0.0.1 at a port of the system's choice, takes one answer with the right state,
and tells everybody else, in the browser, why theirs was not taken.
"""

from __future__ import annotations

import asyncio
import html
import re
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_OWN_HOST = re.compile(rb"host:[ \t]*(?:localhost|127\.0\.0\.1)(?::\d+)?[ \t]*", re.IGNORECASE)
_LONGEST_HEAD = 32_768
_READ_SECONDS = 10.0
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="referrer" content="no-referrer"><title>drivefeed</title>
<body style="font:1.1em/1.5 sans-serif;max-width:32em;margin:4em auto;padding:0 1em">
<p>{words}</p></body></html>"""

DONE = "You can close this window. How it went is told where you started the sign-in."
WRONG_STATE = (
    "This answer belongs to another sign-in, or was made up, so it was not taken. Use the newest "
    "window, or start again."
)
REPLAYED = "This answer was taken before, and counts only once. You can close this window."
NOTHING_HERE = "Nothing is here."
NO_ANSWER = "This page waits for the answer of Microsoft's sign-in, and this is none."


class Loopback:
    """Waits for the one answer with the right state.

    Args:
        state: what the answer has to bring back. May be set once the port is known.
    """

    def __init__(self, state: str = "") -> None:
        self.state = state
        self.port = 0
        self._answer: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()

    @property
    def redirect_uri(self) -> str:
        """Where the browser is sent; Entra lets http://localhost have any port."""
        return f"http://localhost:{self.port}"

    async def answer(self) -> dict[str, str]:
        """Return the fields of the answer, as soon as it is there."""
        return await asyncio.shield(self._answer)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, ValueError):
            async with asyncio.timeout(_READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
            status, words = self._judge(head)
            body = _PAGE.format(words=html.escape(words)).encode()
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                f"Content-Length: {len(body)}\r\nCache-Control: no-store\r\n"
                "Connection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        writer.close()

    def _judge(self, head: bytes) -> tuple[str, str]:
        method, target, *_ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ")
        hosts = [line for line in head.split(b"\r\n") if line.lower().startswith(b"host:")]
        if len(hosts) != 1 or not _OWN_HOST.fullmatch(hosts[0]):
            # A page of another site whose name points at this machine (DNS rebinding).
            return "421 Misdirected Request", NOTHING_HERE
        if method != "GET" or urlsplit(target).path != "/":
            return "404 Not Found", NOTHING_HERE
        fields = dict(parse_qsl(urlsplit(target).query))
        if not fields.keys() & {"code", "error"}:
            return "400 Bad Request", NO_ANSWER
        if fields.get("state") != self.state:
            return "400 Bad Request", WRONG_STATE
        if self._answer.done():
            return "409 Conflict", REPLAYED
        self._answer.set_result(fields)
        return "200 OK", DONE


@asynccontextmanager
async def listening() -> AsyncIterator[Loopback]:
    """Listen while the context is open."""
    door = Loopback()
    server = await asyncio.start_server(door.serve, "127.0.0.1", 0, limit=_LONGEST_HEAD)
    door.port = server.sockets[0].getsockname()[1]
    try:
        yield door
    finally:
        server.close()


def fields_of(pasted: str) -> dict[str, str]:
    """Return the fields of a redirected URL that a person pasted."""
    return dict(parse_qsl(urlsplit(pasted.strip()).query))

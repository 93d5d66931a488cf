"""The download host: signed URLs that expire, byte ranges, and no tolerance for bearer tokens."""

from __future__ import annotations

import asyncio
import re
from email.utils import formatdate
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from graphsim.bodies import READ_SIZE, AlteredBody, Body, BytesBody
from graphsim.errors import GraphError, not_found
from graphsim.items import Item, etag, mime_type
from graphsim.ranges import UnsatisfiableRangeError, parse_ranges
from graphsim.seals import BadSealError, Seals

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from graphsim.clock import Clock
    from graphsim.drive import Drive
    from graphsim.exchange import Exchange

PREFIX = "/_download/"
_PURPOSE = "download"
_BOUNDARY = "graphsim-part-of-a-range"


class Downloads:
    """Makes download URLs and serves them.

    Args:
        drives: Where the files are.
        seals: Signs the URLs.
        clock: Decides when a URL has expired.
        lifetime: Seconds a URL is good for.
        host: Host and port put into URLs; by default the other name of the loopback host.
    """

    def __init__(
        self,
        drives: Sequence[Drive],
        seals: Seals,
        clock: Clock,
        lifetime: float = 3600,
        host: str | None = None,
    ) -> None:
        self._drives = drives
        self._seals = seals
        self._clock = clock
        self.lifetime = lifetime
        self._host = host
        self._issued = 0

    def url(self, exchange: Exchange, drive: Drive, item: Item) -> str:
        """Return a pre-authenticated URL on another host name than the caller used for Graph."""
        self._issued += 1
        expiry = self._clock.now() + self.lifetime
        facts = {"d": drive.id, "i": item.id, "x": expiry, "n": self._issued}
        token = self._seals.seal(_PURPOSE, facts)
        host = self._host or _other_name(exchange.host)
        return f"{exchange.scheme}://{host}{PREFIX}{quote(item.id)}?tempauth={token}"

    async def answer(self, exchange: Exchange) -> None:
        """Serve a download URL.

        Raises:
            GraphError: 401 for a bearer token or a bad or expired URL, 404 for a removed file.
        """
        exchange.understood("download", item=unquote(exchange.raw_path.removeprefix(PREFIX)))
        drive, item = self._opened(exchange)
        exchange.understood("download", drive=drive.id, item=item.id, name=item.name)
        exchange.refuse_if_told()
        if "authorization" in exchange.headers:
            raise GraphError(401, "unauthenticated", "This URL must be used without a token.")
        if exchange.fault("expired_url"):
            raise GraphError(401, "unauthenticated", "The download URL has expired.")
        if item.deleted:
            raise not_found()
        await self.send(exchange, drive, item)

    async def send(self, exchange: Exchange, drive: Drive, item: Item) -> None:
        """Send a file, or the parts of it that a Range header asks for."""
        item, body = await drive.open(item)
        drive.was_downloaded(item)
        if alter := exchange.fault("alter"):
            extra = f"{alter.extra or 'altered'} {alter.hits}" if alter.fresh else alter.extra
            body = AlteredBody(body, alter.keep, extra.encode())
        try:
            await self._send(exchange, drive, item, body)
        finally:
            body.close()

    def _opened(self, exchange: Exchange) -> tuple[Drive, Item]:
        match = re.search(r"(?:^|&)tempauth=([^&]+)", exchange.query)
        try:
            facts = self._seals.open(_PURPOSE, match.group(1) if match else "")
        except BadSealError as error:
            raise GraphError(401, "unauthenticated", "The download URL is not valid.") from error
        if facts["x"] < self._clock.now():
            raise GraphError(401, "unauthenticated", "The download URL has expired.")
        for drive in self._drives:
            if drive.id == facts["d"] and facts["i"] in drive.tree.items:
                return drive, drive.tree.items[facts["i"]]
        raise not_found()

    async def _send(self, exchange: Exchange, drive: Drive, item: Item, body: Body) -> None:
        tag = etag(drive.profile, item)
        tag = tag if tag.startswith('"') else f'"{tag}"'
        headers = {
            "Content-Type": mime_type(item.name),
            "ETag": tag,
            "Accept-Ranges": "bytes",
            "Last-Modified": formatdate(item.modified, usegmt=True),
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(item.name)}",
        }
        if tag in exchange.headers.get("if-none-match", ""):
            await exchange.respond(304, headers, b"")
            return
        wanted = exchange.headers.get("range")
        is_other = exchange.headers.get("if-range", tag) != tag
        if is_other and not exchange.fault("ignore_if_range"):
            wanted = None
        if wanted is not None and exchange.fault("ignore_range"):
            wanted = None
        try:
            parts = parse_ranges(wanted, body.size)
        except UnsatisfiableRangeError as error:
            headers["Content-Range"] = f"bytes */{body.size}"
            raise GraphError(416, "invalidRange", str(error), None, headers) from error
        if parts is None:
            blocks = _blocks(exchange, body, [(0, body.size)])
            await exchange.respond(200, headers, blocks, body.size)
            return
        if len(parts) == 1:
            if exchange.fault("wrong_range"):
                parts = [_shifted(*parts[0])]
            begin, end = parts[0]
            headers["Content-Range"] = f"bytes {begin}-{end - 1}/{body.size}"
            await exchange.respond(206, headers, _blocks(exchange, body, parts), end - begin)
            return
        seams = _seams(parts, headers["Content-Type"], body.size)
        headers["Content-Type"] = f"multipart/byteranges; boundary={_BOUNDARY}"
        length = sum(end - begin for begin, end in parts) + sum(map(len, seams))
        await exchange.respond(206, headers, _blocks(exchange, body, parts, seams), length)


def _shifted(begin: int, end: int) -> tuple[int, int]:
    """Return another part than the one asked for."""
    return (begin - 1, end) if begin else (min(1, end - 1), end)


async def _blocks(
    exchange: Exchange,
    body: Body,
    parts: list[tuple[int, int]],
    seams: Sequence[bytes] = (b"", b""),
) -> AsyncIterator[bytes]:
    """Yield the parts of a body in blocks, with a seam before each part and after the last."""
    in_memory = isinstance(body, BytesBody)
    for (begin, end), seam in zip(parts, seams, strict=False):
        if seam:
            yield seam
        at = begin
        while at < end:
            size = min(READ_SIZE, end - at)
            block = body.read(at, size) if in_memory else await _read(body, at, size)
            if not block:
                # The file shrank below the length that was announced: the answer can't be kept.
                await exchange.drop()
            at += len(block)
            yield block
    if seams[-1]:
        yield seams[-1]


async def _read(body: Body, offset: int, size: int) -> bytes:
    return await asyncio.to_thread(body.read, offset, size)


def _seams(parts: list[tuple[int, int]], media_type: str, size: int) -> list[bytes]:
    heads = [
        f"\r\n--{_BOUNDARY}\r\nContent-Type: {media_type}\r\n"
        f"Content-Range: bytes {begin}-{end - 1}/{size}\r\n\r\n".encode()
        for begin, end in parts
    ]
    return [*heads, f"\r\n--{_BOUNDARY}--\r\n".encode()]


def _other_name(host: str) -> str:
    """Return the same server under another host name: a client must see another origin."""
    name, colon, port = host.partition(":")
    return ("127.0.0.1" if name.lower() == "localhost" else "localhost") + colon + port


def is_download(raw_path: str) -> bool:
    """Tell whether a path belongs to the download host."""
    return raw_path.startswith(PREFIX)

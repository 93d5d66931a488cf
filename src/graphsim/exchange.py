"""One request and its answer: the ground that Graph, Entra and the download host stand on.

Answers are written here and nowhere else, because here the faults of the wire live: a body cut
short, a reset connection, a silence, a missing Content-Length.
"""

from __future__ import annotations

import asyncio
import re
import socket
import struct
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qsl

import msgspec

from graphsim.allowance import Account, Allowance, price
from graphsim.clock import Clock, iso
from graphsim.errors import USUAL_CODES, GraphError
from graphsim.faults import Asked, Fault, Faults
from graphsim.requestlog import Entry, RequestLog
from graphsim.spoiling import SPOILING, gzipped, spoiled

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_MAX_FORM = 1 << 16
_REFUSALS = 400
_WAITS = frozenset({429, 503, 509})
"""Statuses that ask an app to wait with everything."""
_SECRETS = re.compile(r"((?:tempauth|access_token|code)=)[^&]+")
JSON_TYPE = (
    "application/json;odata.metadata=minimal;odata.streaming=true;"
    "IEEE754Compatible=false;charset=utf-8"
)


class DroppedError(Exception):
    """The connection was cut on purpose, or the client has gone: nothing more to say."""


class Exchange:
    """A request as it came in, and the means to answer it.

    Args:
        scope: The ASGI scope; ``raw_path`` must be present.
        receive: ASGI.
        send: ASGI.
        transport: The connection, for faults that cut it; ``None`` where it is unknown.
        log: Where the request is recorded.
        faults: Asked for faults of the body.
        clock: The time of the log.
        allowance: Counts resource units.
        batch: The number of the ``$batch`` request that this one is a part of.
    """

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        *,
        transport: asyncio.Transport | None,
        log: RequestLog,
        faults: Faults,
        clock: Clock,
        allowance: Allowance,
        batch: int | None = None,
    ) -> None:
        self._receive = receive
        self._send = send
        self._transport = transport
        self._log = log
        self.faults = faults
        """What misbehaviour is scripted, for those who draw from its seed."""
        self._clock = clock
        self._drip: Fault | None = None
        self._allowance = allowance
        self._account: Account | None = None
        self._limits: dict[str, str] = {}
        self.method: str = scope["method"]
        self.raw_path: str = scope["raw_path"].decode("latin-1")
        self.query: str = scope["query_string"].decode("latin-1")
        self.headers = {
            name.decode("latin-1").lower(): value.decode("latin-1")
            for name, value in scope["headers"]
        }
        server = scope.get("server") or ("127.0.0.1", 0)
        self.scheme: str = scope["scheme"]
        self.host = self.headers.get("host", f"{server[0]}:{server[1]}")
        self.base = f"{self.scheme}://{self.host}"
        self.request_id = str(uuid.uuid4())  # noqa: TID251 - ids of requests need no replaying
        url = self.raw_path + (f"?{self.query}" if self.query else "")
        self.asked = Asked(method=self.method, url=url)
        self.entry = log.begin(
            Entry(
                number=0, time=clock.now(), method=self.method, host=self.host,
                url=_SECRETS.sub(r"\1***", url), request_id=self.request_id,
                had_authorization="authorization" in self.headers,
                range=self.headers.get("range"), batch=batch,
            )
        )  # fmt: skip

    def called_by(self, app: str, tenant: str) -> None:
        """Record whose request it is: what it costs is charged to that account."""
        self._account = self._allowance.account(app, tenant)
        self.asked.client, self.entry.app, self.entry.tenant = app, app, tenant
        now = self._clock.now()
        if now < self._account.told_until:
            self.entry.penalty_age = now - self._account.told_at

    def understood(self, op: str, **facts: Any) -> None:
        """Record what the request asks for, and charge for it.

        Raises:
            GraphError: 429, if the caller has spent what it may.
        """
        first = not self.asked.op
        self.asked.op = op
        for name, value in facts.items():
            setattr(self.asked, name, value)
        self.entry.op = op
        self.entry.drive, self.entry.item = self.asked.drive, self.asked.item
        self.entry.name = self.asked.name
        self.entry.flow, self.entry.user = self.asked.flow, self.asked.user
        if first:
            self._log.understood(self.entry)
            if self._account is not None:
                units = self.entry.resource_units = price(op, self.asked.url, self.method)
                self._limits = self._allowance.charge(self._account, units)

    def fault(self, *kinds: str) -> Fault | None:
        """Return the fault that strikes this request now, and note it in the log."""
        fault = self.faults.take(self.asked, *kinds)
        if fault is not None:
            before = self.entry.fault
            self.entry.fault = f"{before}+{fault.kind}" if before else fault.kind
        return fault

    def refuse_if_told(self) -> None:
        """Raise what a ``status`` fault describes, if one strikes.

        Raises:
            GraphError: With the fault's status, code and headers.
        """
        fault = self.fault("status")
        if fault is not None:
            raise self.refusal(fault)

    @staticmethod
    def refusal(fault: Fault) -> GraphError:
        """Return the answer that a ``status`` fault describes."""
        headers = dict(fault.headers)
        if fault.retry_after is not None:
            headers["Retry-After"] = fault.retry_after
        code = fault.code or USUAL_CODES.get(fault.status, "generalException")
        return GraphError(fault.status, code, fault.message, fault.inner, headers)

    async def form(self) -> dict[str, str]:
        """Return the fields of a URL-encoded form, of at most 64 KiB."""
        body = await self.body()
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))

    async def body(self) -> bytes:
        """Return the body of the request, of about 64 KiB at most."""
        body = bytearray()
        while len(body) <= _MAX_FORM:
            message = await self._receive()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                break
        return bytes(body)

    async def json(
        self,
        status: int,
        content: Any,
        headers: dict[str, str] | None = None,
        *,
        graph: bool = True,
    ) -> None:
        """Answer with JSON, and with Graph's standard headers unless ``graph`` is false."""
        kind = JSON_TYPE if graph else "application/json; charset=utf-8"
        fields = {"Content-Type": kind, "Cache-Control": "no-store"}
        fields |= self.standard_headers() if graph else {}
        body = msgspec.json.encode(content)
        if graph and status < _REFUSALS and (fault := self.fault(*SPOILING)):
            status, fields["Content-Type"], body = 200, *spoiled(fault, body)
        await self.respond(status, fields | (headers or {}), body)

    async def error(self, error: GraphError) -> None:
        """Answer with a Graph error."""
        now = self._clock.now()
        if self._account is not None and error.status in _WAITS:
            self._account.told(now, error.headers)
        date = iso(now).removesuffix("Z")
        body = error.body(self.request_id, self.client_request_id, date)
        await self.json(error.status, body, error.headers)

    @property
    def client_request_id(self) -> str:
        """The id that the client gave its request, or ours."""
        return str(self.headers.get("client-request-id", self.request_id))

    def standard_headers(self) -> dict[str, str]:
        """Return the headers that Graph puts on every answer."""
        server = {"DataCenter": "Nowhere", "Slice": "E", "Ring": "5", "RoleInstance": "graphsim"}
        return {
            "request-id": self.request_id,
            "client-request-id": self.client_request_id,
            "x-ms-ags-diagnostic": msgspec.json.encode({"ServerInfo": server}).decode(),
            "Vary": "Accept-Encoding",
            **self._limits,
        }

    async def respond(
        self,
        status: int,
        headers: dict[str, str],
        body: bytes | AsyncIterator[bytes],
        length: int | None = None,
    ) -> None:
        """Send the answer; ``length`` is that of a streamed body, null for a chunked one."""
        if hang := self.fault("hang"):
            await asyncio.sleep(hang.seconds)
        self._drip = self.fault("drip")
        headers, body = await self._framed(headers, body, length)
        headers = {"Date": formatdate(self._clock.now(), usegmt=True)} | headers
        fields = [(k.lower().encode(), v.encode("latin-1", "replace")) for k, v in headers.items()]
        cut = self.fault("truncate", "reset", "stall")
        cut = msgspec.structs.replace(cut) if cut else None
        if cut is not None and cut.kind == "reset" and cut.after == 0:
            await self._drop(reset=True)
        self.entry.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": fields})
        if self.method == "HEAD":
            body = b""
        if isinstance(body, bytes):
            await self._write(body, cut)
        else:
            async for block in body:
                await self._write(block, cut)
        if cut is not None and cut.after >= 0:
            await self._strike(cut)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})
        self.entry.complete = True

    async def _framed(
        self, headers: dict[str, str], body: bytes | AsyncIterator[bytes], length: int | None
    ) -> tuple[dict[str, str], bytes | AsyncIterator[bytes]]:
        """Return the headers with those of the body's length and coding, and the body."""
        if isinstance(body, bytes):
            length = len(body)
        if body and (zipped := self.fault("gzip")):
            headers = headers | {"Content-Encoding": "gzip"}
            body = await gzipped(body)
            length = len(body) if zipped.with_length else None
        if length is None or self.fault("no_length"):
            return headers, body
        return headers | {"Content-Length": str(length)}, body

    async def _write(self, block: bytes, cut: Fault | None) -> None:
        if cut is not None and 0 <= cut.after < self.entry.bytes + len(block):
            at = cut.after - self.entry.bytes
            await self._out(block[:at])
            await self._strike(cut)
            block = block[at:]
        await self._out(block)

    async def _out(self, block: bytes) -> None:
        if not block:
            return
        size = self._drip.size if self._drip else len(block)
        for at in range(0, len(block), max(size, 1)):
            if self._transport is not None and self._transport.is_closing():
                raise DroppedError
            piece = block[at : at + size]
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
            self.entry.bytes += len(piece)
            if self._drip is not None:
                await asyncio.sleep(self._drip.seconds)

    async def _strike(self, cut: Fault) -> None:
        if cut.kind != "stall":
            await self._drop(reset=cut.kind == "reset")
        cut.after = -1
        await asyncio.sleep(cut.seconds)

    async def drop(self) -> None:
        """Close the connection although the answer is not complete.

        Raises:
            DroppedError: Always.
        """
        await self._drop(reset=False)

    async def _drop(self, *, reset: bool) -> None:
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

"""How graphsim calls others: handshakes and notifications, to the loopback address only."""

from __future__ import annotations

import asyncio
import http.client
import ipaddress
import ssl
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

    from graphsim.clock import Clock
    from graphsim.faults import Asked, Faults

_MOST = 1 << 16


class Delivery(msgspec.Struct, kw_only=True):
    """One attempt to reach a client's endpoint."""

    subscription: str
    kind: str
    """``validation``, ``change`` or ``lifecycle``."""
    url: str
    time: float
    """Epoch seconds of graphsim's clock."""
    attempt: int = 1
    status: int = 0
    """0 where nothing was answered in time."""
    seconds: float = 0.0
    """How long the endpoint took, really."""
    dropped: bool = False
    """A fault kept it from being sent."""


class Answer(msgspec.Struct, frozen=True):
    """What an endpoint answered; status 0 for nothing."""

    status: int
    media_type: str = ""
    body: bytes = b""

    def echoes(self, token: str) -> bool:
        """Tell whether it is what a handshake wants: 200, plain text, and the token alone."""
        is_text = self.media_type.lower().startswith("text/plain")
        return self.status == 200 and is_text and self.body == token.encode()  # noqa: PLR2004 - OK


class Courier:
    """Posts to endpoints of clients.

    Args:
        clock: The time in the list of deliveries.
        faults: Asked whether a notification is lost or comes twice (``op="notify"``).
    """

    def __init__(self, clock: Clock, faults: Faults) -> None:
        self._clock = clock
        self._faults = faults
        self.deliveries: list[Delivery] = []
        self.handshake_seconds = 10.0
        self.accept_seconds = 3.0
        self.pauses = (0.2, 0.5, 1.0, 2.0, 4.0)
        """Real seconds between attempts; Microsoft goes on for four hours."""
        self.trusted: Path | None = None
        """Certificates with which https endpoints may sign, beside the usual ones."""

    async def validate(self, subscription: str, url: str, query: str) -> Answer:
        """Do the handshake with an endpoint; ``query`` is the URL with the token in it."""
        record = Delivery(
            subscription=subscription, kind="validation", url=url, time=self._clock.now()
        )
        return await self._post(record, query, "text/plain; charset=utf-8", b"")

    async def deliver(self, record: Delivery, content: object, asked: Asked) -> bool:
        """Post a notification, again and again until it is accepted or the pauses are used up."""
        if self._faults.take(asked, "drop_notification"):
            record.dropped = True
            self.deliveries.append(record)
            return False
        body = msgspec.json.encode(content)
        times = 2 if self._faults.take(asked, "repeat_notification") else 1
        accepted = [await self._deliver(record, body) for _ in range(times)]
        return all(accepted)

    async def _deliver(self, record: Delivery, body: bytes) -> bool:
        for number, pause in enumerate((0.0, *self.pauses), 1):
            await asyncio.sleep(pause)
            attempt = msgspec.structs.replace(record, attempt=number, time=self._clock.now())
            answer = await self._post(attempt, record.url, "application/json", body)
            if 200 <= answer.status < 300:  # noqa: PLR2004 - any success
                return True
        return False

    async def _post(self, record: Delivery, url: str, kind: str, body: bytes) -> Answer:
        self.deliveries.append(record)
        began = time.monotonic()
        is_handshake = record.kind == "validation"
        limit = self.handshake_seconds if is_handshake else self.accept_seconds
        call = asyncio.to_thread(self._call, url, kind, body, limit)
        try:
            answer = await asyncio.wait_for(call, limit)
        except (OSError, TimeoutError, http.client.HTTPException):
            answer = Answer(0)
        record.status, record.seconds = answer.status, time.monotonic() - began
        return answer

    def _call(self, url: str, kind: str, body: bytes, limit: float) -> Answer:
        parts = urlsplit(url)
        host = parts.hostname or ""
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            if self.trusted is not None:
                context.load_verify_locations(self.trusted)
            connection = http.client.HTTPSConnection(
                host, parts.port, timeout=limit, context=context
            )
        else:
            connection = http.client.HTTPConnection(host, parts.port, timeout=limit)
        try:
            path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
            connection.request("POST", path, body, {"Content-Type": kind})
            answer = connection.getresponse()
            media_type = answer.headers.get("Content-Type", "")
            return Answer(answer.status, media_type, answer.read(_MOST))
        finally:
            connection.close()


def is_loopback(url: str) -> bool:
    """Tell whether a URL leads to this machine, by its text alone."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme not in {"http", "https"}:
        return False
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False

"""Whether a host can be reached: name, port, the proxy before it, certificate; and its time.

:func:`reach` asks for ``/`` of a host alone, so that no address that is a secret itself leaves this
machine.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import httpx

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drivefeed.outbound import Outbound
    from drivefeed.ports import Clock

CONNECT_SECONDS = 5.0
_PORTS = {"http": 80, "https": 443}
_PROXY_AUTH = 407
_MOST_BYTES = 16 * 1024


class Obstacle(StrEnum):
    """What stands between us and a host, in the order in which one meets it."""

    NAME = "name"
    PORT = "port"
    PROXY = "proxy"
    TRUST = "trust"
    SILENCE = "silence"


@dataclass(frozen=True, slots=True)
class Reach:
    """What became of a try to reach a host.

    Attributes:
        host: name and port, as people write it.
        proxy: the proxy's host and port, or None for directly.
        obstacle: None where it answered.
        words: what happened, without a full stop; empty where it answered.
        ahead_ms: by how much its clock is ahead of ours; None where it did not say its time.
    """

    host: str
    proxy: str | None
    obstacle: Obstacle | None = None
    words: str = ""
    ahead_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a host answered.

    Attributes:
        content_type, date: headers, empty where there are none.
        body: its first bytes, 16 KiB at most.
        seconds: between the request and the end of what was read of the answer.
    """

    status: int
    content_type: str
    date: str
    body: bytes
    seconds: float


def host_of(url: str) -> str:
    """Return host and port of a URL, without a port where it is the usual one."""
    parts = urlsplit(url)
    name = parts.hostname or ""
    return name if parts.port in {None, _PORTS.get(parts.scheme)} else f"{name}:{parts.port}"


async def reach(url: str, way: Outbound, clock: Clock, *, ca_file: str | None = None) -> Reach:
    """Try to reach the host of an http or https URL as our clients do."""
    parts = urlsplit(url)
    root = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}/"
    answer = await ask("GET", root, way, ca_file=ca_file)
    if isinstance(answer, Reach):
        return answer
    middle = clock.now() - round(answer.seconds * 500)
    return Reach(host_of(url), _through(way.proxy_for(url)), ahead_ms=_ahead(answer.date, middle))


async def ask(
    method: str, url: str, way: Outbound, *, ca_file: str | None = None
) -> Answer | Reach:
    """Send a request without a body as our clients do; return the answer, or what stopped it."""
    proxy = way.proxy_for(url)
    host, through = host_of(url), _through(proxy)
    first = urlsplit(proxy or url)
    port = first.port or _PORTS.get(first.scheme, 443)
    stopped = await try_port(first.hostname or "", port)
    if stopped is not None:
        obstacle, words = stopped
        return Reach(host, through, Obstacle.PROXY if proxy else obstacle, words)
    try:
        transport = await asyncio.to_thread(way.transport, ca_file)
        async with (
            httpx.AsyncClient(
                transport=transport,
                trust_env=False,
                timeout=CONNECT_SECONDS,
                follow_redirects=False,
            ) as client,
            client.stream(method, url) as answer,
        ):
            body = await _beginning(answer)
    except httpx.HTTPError as error:
        obstacle, words = _met(error, by_proxy=proxy is not None)
        return Reach(host, through, obstacle, words)
    if answer.status_code == _PROXY_AUTH and proxy:
        return Reach(host, through, Obstacle.PROXY, "the proxy wants a user and a password")
    return Answer(
        status=answer.status_code,
        content_type=answer.headers.get("content-type", ""),
        date=answer.headers.get("date", ""),
        body=body,
        seconds=answer.elapsed.total_seconds(),
    )


def _through(proxy: str | None) -> str | None:
    return host_of(proxy) if proxy else None


async def _beginning(answer: httpx.Response) -> bytes:
    body = b""
    async for piece in answer.aiter_bytes():
        body += piece
        if len(body) > _MOST_BYTES:
            break
    return body[:_MOST_BYTES]


async def try_port(host: str, port: int) -> tuple[Obstacle, str] | None:
    """Resolve a name and connect to a port; return what stands in the way, or None."""
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            _, writer = await asyncio.open_connection(host, port)
    except socket.gaierror as error:
        return Obstacle.NAME, f"the name {host} cannot be resolved ({error.strerror})"
    except TimeoutError:
        return Obstacle.PORT, f"{host}:{port} does not answer within {CONNECT_SECONDS:.0f} seconds"
    except OSError as error:
        return Obstacle.PORT, f"{host}:{port} cannot be connected to ({_plain(error)})"
    writer.close()
    return None


def _met(error: httpx.HTTPError, *, by_proxy: bool) -> tuple[Obstacle, str]:
    for one in _causes(error):
        if isinstance(one, ssl.SSLCertVerificationError):
            return Obstacle.TRUST, f"its certificate is not trusted ({one.verify_message})"
        if isinstance(one, ssl.SSLError):
            return Obstacle.TRUST, f"no encrypted connection came about ({one.reason or one})"
    if isinstance(error, httpx.ProxyError) or by_proxy:
        return Obstacle.PROXY, f"the proxy did not connect us ({_plain(error)})"
    return Obstacle.SILENCE, f"it did not answer ({_plain(error)})"


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _plain(error: BaseException) -> str:
    said = getattr(error, "strerror", None) or str(error)
    return str(said) or type(error).__name__


def _ahead(date: str, middle: int) -> int | None:
    """Return how far a ``Date`` header is ahead of an instant of ours.

    The header has whole seconds, rounded down; half a second is the best guess of the rest.
    """
    try:
        told = parsedate_to_datetime(date)
    except ValueError:
        return None
    return int(told.timestamp() * 1000) + 500 - middle

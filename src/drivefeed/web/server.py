"""Serves the status page on a port, in a process of its own or inside of the daemon."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import uvicorn

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.web.application import guarded, routes_of
from drivefeed.web.backend_calls import callers_of
from drivefeed.web.bell import Bell
from drivefeed.web.connections import PatientProtocol
from drivefeed.web.door import leaving_word
from drivefeed.web.site import Site

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from starlette.types import ASGIApp

    from drivefeed.backends.signing import Credential
    from drivefeed.catalog.engine import Catalog
    from drivefeed.web.site import Seek

_GRACE_SECONDS: Final = 2
_BACKLOG: Final = 128
_MOST_REQUESTS: Final = 300
"""At the same time; more than the listeners that there may be."""


class StatusPage:
    """The status page over a catalog.

    Args:
        host: the address to bind; 127.0.0.1 for this machine alone.
        port: 0 for any that is free.
        url: where people reach it, if that is not the bound address: that of a proxy.
        folder: the data folder, where it leaves word of itself for commands.
        seek: searches; None for pages without search.
        credentials: the secrets of backends that may say that a job ended, by name.
        notifications_url: where Microsoft says that something changed; empty for nowhere.

    Attributes:
        site: what answers are made from; there once it is open.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        host: str,
        port: int,
        url: str = "",
        folder: Path | None = None,
        seek: Seek | None = None,
        credentials: Mapping[str, Credential] | None = None,
        notifications_url: str = "",
    ) -> None:
        self._socket = bound(
            host, port, what="The status page", remedy="Choose another one with --port or web_port."
        )
        self._folder = folder
        here = self._socket.getsockname()[1]
        self._address = address_of(host, here)
        self.site = Site(catalog, url.rstrip("/") or self._address, seek)
        self.site.callers = callers_of(credentials or {}, catalog.clock)
        if notifications_url:
            self.site.bell = Bell(catalog)
            self.site.names = frozenset({urlsplit(notifications_url).hostname or ""})
        self._server: uvicorn.Server | None = None
        self._done = asyncio.Event()

    @property
    def url(self) -> str:
        """Where people reach it."""
        return self.site.url

    async def run(self) -> None:
        """Serve until closed."""
        folder = self._folder
        with leaving_word(folder, self._address) if folder else nullcontext():
            await self._serve()

    async def _serve(self) -> None:
        self._server = await server_of(
            guarded(routes_of(self.site)),
            most_requests=_MOST_REQUESTS,
            grace_seconds=_GRACE_SECONDS,
        )
        self._server.should_exit = self.site.watch.closed
        try:
            async with asyncio.TaskGroup() as group:
                beside = [group.create_task(self.site.watch.run(), name="status page")]
                if self.site.bell is not None:
                    beside.append(group.create_task(self.site.bell.run(), name="notifications"))
                await self._server.serve(sockets=[self._socket])
                self.site.watch.close()
                for task in beside:
                    task.cancel()
        finally:
            self._socket.close()
            self._done.set()

    async def close(self) -> None:
        """Let listeners go, answer what was asked, then stop."""
        self.site.watch.close()
        if self._server is not None:
            self._server.should_exit = True
            await self._done.wait()
        else:
            self._socket.close()


class SignalFree(uvicorn.Server):
    """Leaves signals to whoever runs it, which ends everything in order."""

    def capture_signals(self) -> Any:
        """Capture none."""
        return nullcontext()


async def server_of(app: ASGIApp, *, most_requests: int, grace_seconds: int) -> SignalFree:
    """Return what serves an application on a socket that is bound already.

    Args:
        most_requests: so many are answered at the same time; further ones are refused.
        grace_seconds: how long requests may take that run when it is to stop.
    """
    config = uvicorn.Config(
        app,
        http=PatientProtocol,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        limit_concurrency=most_requests,
        timeout_graceful_shutdown=grace_seconds,
    )
    # It imports its protocols, which takes tenths of a second.
    await asyncio.to_thread(config.load)
    return SignalFree(config)


def address_of(host: str, port: int) -> str:
    """Return the URL of a bound address; of all addresses of the machine, one by its name."""
    if host in {"", "0.0.0.0", "::"}:  # noqa: S104 - it is asked for, not bound, here
        host = socket.gethostname()
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach what is bound there."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bound(host: str, port: int, *, what: str, remedy: str) -> socket.socket:
    """Return a listening socket.

    Args:
        what: what wants to listen, as a sentence begins.
        remedy: the sentence that says what to do where it cannot.

    Raises:
        NeedsAttention: the address cannot be bound.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen(_BACKLOG)
    except OSError as error:
        made.close()
        raise NeedsAttention(
            f"{what} cannot listen on {host} port {port}: {error.strerror}. {remedy}",
            reason=Reason.MISCONFIGURED,
        ) from error
    return made

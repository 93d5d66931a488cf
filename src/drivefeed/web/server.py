"""Serves the status page on a port, in a process of its own or inside of the daemon."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from drivefeed.web.application import guarded, routes_of
from drivefeed.web.backend_calls import callers_of
from drivefeed.web.bell import Bell
from drivefeed.web.door import leaving_word
from drivefeed.web.listening import address_of, bound, server_of
from drivefeed.web.site import Site

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from drivefeed.backends.signing import Credential
    from drivefeed.catalog.engine import Catalog
    from drivefeed.web.quiet_server import QuietServer
    from drivefeed.web.site import Seek

_GRACE_SECONDS: Final = 2
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
        index: what the catalog calls the vector index.
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
        index: str = "",
        credentials: Mapping[str, Credential] | None = None,
        notifications_url: str = "",
    ) -> None:
        self._socket = bound(
            host, port, what="The status page", remedy="Choose another one with --port or web_port."
        )
        self._folder = folder
        here = self._socket.getsockname()[1]
        self._address = address_of(host, here)
        self.site = Site(catalog, url.rstrip("/") or self._address, seek, index)
        self.site.callers = callers_of(credentials or {}, catalog.clock)
        if notifications_url:
            self.site.bell = Bell(catalog)
            self.site.names = frozenset({urlsplit(notifications_url).hostname or ""})
        self._server: QuietServer | None = None
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

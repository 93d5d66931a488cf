"""Serves the backend contract on a port."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import uvicorn

from drivefeed.web.connections import PatientProtocol
from drivefeed.web.server import SignalFree, address_of, bound

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_GRACE_SECONDS: Final = 5
_MOST_REQUESTS: Final = 200
_REMEDY: Final = "Choose another one with --port."


class BackendServer:
    """A bound port, and what is served there.

    Args:
        port: 0 for any that is free.
    """

    def __init__(self, host: str, port: int) -> None:
        self._socket = bound(host, port, what="The backend", remedy=_REMEDY)
        self.url = address_of(host, self._socket.getsockname()[1])
        self._server: uvicorn.Server | None = None
        self._closing = False

    async def run(self, app: ASGIApp) -> None:
        """Serve until closed."""
        config = uvicorn.Config(
            app,
            http=PatientProtocol,
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            lifespan="off",
            ws="none",
            limit_concurrency=_MOST_REQUESTS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
        # It imports its protocols, which takes tenths of a second.
        await asyncio.to_thread(config.load)
        self._server = SignalFree(config)
        self._server.should_exit = self._closing
        try:
            await self._server.serve(sockets=[self._socket])
        finally:
            self._socket.close()

    def close(self) -> None:
        """Answer what was asked, then stop."""
        self._closing = True
        if self._server is not None:
            self._server.should_exit = True

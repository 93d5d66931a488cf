"""Serves the backend contract on a port."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from drivefeed.web.listening import address_of, bound, server_of

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from drivefeed.web.quiet_server import QuietServer

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
        self._server: QuietServer | None = None
        self._closing = False

    async def run(self, app: ASGIApp) -> None:
        """Serve until closed."""
        self._server = await server_of(
            app, most_requests=_MOST_REQUESTS, grace_seconds=_GRACE_SECONDS
        )
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

"""``/healthz``, ``/readyz`` and ``/metrics`` of any role, on a port of this machine.

Whoever restarts what is ill asks these; nothing that they say is secret, and nothing is behind a
key.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final

from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from drivefeed.web.door import WORDS_OF_HEALTH
from drivefeed.web.listening import address_of, bound, server_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from starlette.requests import Request

    from drivefeed.services.health import Health
    from drivefeed.web.quiet_server import QuietServer

_MOST_REQUESTS: Final = 20
_GRACE_SECONDS: Final = 1
_NOT_NOW: Final = 503


def health_routes(health: Health) -> list[Route]:
    """Return the addresses, for an application."""

    async def healthz(_: Request) -> Response:
        is_well, said = await health.lives()
        return JSONResponse(said, status_code=200 if is_well else _NOT_NOW)

    async def readyz(_: Request) -> Response:
        is_ready, said = await health.is_ready()
        return JSONResponse(said, status_code=200 if is_ready else _NOT_NOW)

    async def metrics(_: Request) -> Response:
        return Response(generate_latest(), media_type=CONTENT_TYPE_LATEST)

    return [
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/metrics", metrics),
    ]


class HealthServer:
    """Serves them from the start of a process to its end.

    Args:
        folder: the data folder, where it leaves word of itself for ``drivefeed health``.
        port: 0 for any that is free.

    Raises:
        NeedsAttention: the address cannot be bound.
    """

    def __init__(self, health: Health, *, folder: Path, role: str, host: str, port: int) -> None:
        self._health = health
        self._role = role
        self._socket = bound(
            host, port, what="The health check", remedy="Choose another one with health_port."
        )
        self.url = address_of(host, self._socket.getsockname()[1])
        self._word = folder / WORDS_OF_HEALTH.format(f"{role}-{os.getpid()}")
        self._server: QuietServer | None = None

    async def run(self) -> None:
        """Serve until closed."""
        app = Starlette(routes=health_routes(self._health))
        try:
            self._server = await server_of(
                app, most_requests=_MOST_REQUESTS, grace_seconds=_GRACE_SECONDS
            )
            self._leave_word()
            await self._server.serve(sockets=[self._socket])
        finally:
            self._word.unlink(missing_ok=True)
            self._socket.close()

    def close(self) -> bool:
        """Answer what was asked, then stop; False where it has not begun to serve."""
        if self._server is None:
            return False
        self._server.should_exit = True
        return True

    def _leave_word(self) -> None:
        # Without it, health_port still finds the process.
        with suppress(OSError):
            words = {
                "url": self.url,
                "pid": os.getpid(),
                "host": socket.gethostname(),
                "role": self._role,
            }
            self._word.write_text(json.dumps(words), encoding="utf-8")


@asynccontextmanager
async def serving_health(server: HealthServer) -> AsyncIterator[None]:
    """Serve while the block lasts."""
    task = asyncio.create_task(server.run(), name="health")
    try:
        yield
    finally:
        if not server.close():
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

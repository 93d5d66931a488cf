"""The three ports of a running graphsim, all on the loopback address."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from graphsim.admin import admin_app
from graphsim.certificates import ensure_certificates
from graphsim.endpoints import Endpoints, describe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from graphsim.app import Application, Connections


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs the loop."""
        yield


@contextlib.asynccontextmanager
async def running(app: Application, state: Path, port: int) -> AsyncIterator[Endpoints]:
    """Serve an application while the context is open; the admin port and https take free ones.

    Raises:
        OSError: The http port is in use.
    """
    tls = await asyncio.to_thread(ensure_certificates, state / "tls")
    with contextlib.ExitStack() as stack:
        plain, secure, admin = (stack.enter_context(_listening(number)) for number in (port, 0, 0))
        protocol = _recording(app.connections)
        common: dict[str, Any] = {
            "lifespan": "off", "log_config": None, "access_log": False, "server_header": False,
            "date_header": False,
            "timeout_graceful_shutdown": 1, "loop": "asyncio", "ws": "none",
        }  # fmt: skip
        http = uvicorn.Config(app, http=protocol, **common)
        https = uvicorn.Config(
            app, http=protocol, ssl_certfile=tls.certificate, ssl_keyfile=tls.key, **common
        )
        board = uvicorn.Config(admin_app(app), http="h11", **common)
        pairs = ((http, plain), (https, secure), (board, admin))
        servers = [(_Server(config), sock) for config, sock in pairs]
        ports = (sock.getsockname()[1] for sock in (plain, secure, admin))
        endpoints = describe(app, *ports, ca=tls.ca)
        running = [asyncio.create_task(one.serve(sockets=[sock])) for one, sock in servers]
        try:
            while not all(one.started for one, _ in servers):  # noqa: ASYNC110 - no event for it
                await asyncio.sleep(0.005)
            yield endpoints
        finally:
            for one, _ in servers:
                one.should_exit = True
            await asyncio.gather(*running)


def _listening(port: int) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind(("127.0.0.1", port))
    except OSError as error:
        sock.close()
        raise OSError(
            error.errno, f"Port {port} is in use; choose another with --port, or 0 for a free one."
        ) from error
    return sock


def _recording(connections: Connections) -> type[H11Protocol]:
    """Return a protocol that records its connections, so that faults can cut them."""

    class Recording(H11Protocol):
        _peer: tuple[str, int] | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Record the connection."""
            super().connection_made(transport)
            peer = transport.get_extra_info("peername")
            self._peer = (peer[0], peer[1]) if peer else None
            if self._peer:
                connections[self._peer] = transport

        def connection_lost(self, exc: Exception | None) -> None:
            """Forget the connection."""
            if self._peer:
                connections.pop(self._peer, None)
            super().connection_lost(exc)

    return Recording

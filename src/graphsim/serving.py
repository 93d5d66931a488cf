"""graphsim as running servers: one http port, one https port and one admin port, on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from graphsim.admin import admin_app
from graphsim.app import Application, Connections
from graphsim.certificates import ensure_certificates
from graphsim.clock import Clock, SystemClock
from graphsim.directory import DirectoryDrive
from graphsim.drives import Drive, MemoryDrive
from graphsim.endpoints import Endpoints, describe
from graphsim.identity import remembered_identity
from graphsim.items import Profile
from graphsim.seals import Seals

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from graphsim.faults import Faults
    from graphsim.requestlog import RequestLog


class GraphSim:
    """A running graphsim; see :func:`serve`."""

    def __init__(self, app: Application, endpoints: Endpoints, clock: Clock, seals: Seals) -> None:
        self.app = app
        self.endpoints = endpoints
        self.clock = clock
        self._seals = seals

    @property
    def drives(self) -> list[Drive]:
        """The drives, the default one first."""
        return list(self.app.drives)

    @property
    def drive(self) -> Drive:
        """The default drive."""
        return self.app.drives[0]

    @property
    def memory(self) -> MemoryDrive:
        """The first drive that lives in memory."""
        return next(drive for drive in self.app.drives if isinstance(drive, MemoryDrive))

    @property
    def faults(self) -> Faults:
        """The scripted misbehaviour."""
        return self.app.faults

    @property
    def log(self) -> RequestLog:
        """The requests so far."""
        return self.app.log

    def access_token(self, *, delegated: bool = False) -> str:
        """Return a bearer token for Graph without the way through the token endpoint."""
        grants = self.app.entra.grants
        directory = self.app.entra.directory
        form = {"grant_type": "client_credentials"}
        if delegated:
            form = {"grant_type": "refresh_token", "refresh_token": grants.refresh_token()}
        answer = grants.exchange(form, (directory.client_id, directory.client_secret), "")
        return str(answer["access_token"])


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs the loop."""
        yield


@contextlib.asynccontextmanager
async def serve(
    *folders: Path | str,
    profile: Profile | str = Profile.BUSINESS,
    state: Path | None = None,
    port: int = 0,
    page_size: int = 200,
    url_lifetime: float = 3600,
    clock: Clock | None = None,
    memory: tuple[str, ...] = (),
) -> AsyncIterator[GraphSim]:
    """Run graphsim inside this process while the context is open.

    Args:
        folders: Real folders, each served as one drive.
        profile: The kind of every drive.
        state: Where ids and certificates are kept; a temporary folder by default.
        port: The http port; 0 takes a free one.
        page_size: The most items on a page.
        url_lifetime: Seconds a download URL is good for.
        clock: Time of changes and expiry.
        memory: Names of drives in memory; one called ``memory`` if there is no folder.

    Raises:
        OSError: The port is in use, or a folder can't be served.
    """
    with contextlib.ExitStack() as stack:
        if state is None:
            state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graphsim-")))
        clock = clock or SystemClock()
        identity = await asyncio.to_thread(remembered_identity, state)
        seals = Seals(identity.secret)
        kind = Profile(profile)
        drives: list[Drive] = []
        for folder in folders:
            drive = await asyncio.to_thread(DirectoryDrive, Path(folder), kind, seals, clock, state)
            stack.callback(drive.close)
            drives.append(drive)
        names = memory or (() if folders else ("memory",))
        drives += [MemoryDrive(name, kind, seals, clock) for name in names]
        size, life = page_size, url_lifetime
        app = Application(
            drives, identity.directory(), seals, clock, page_size=size, url_lifetime=life
        )
        async with _running(app, state, port) as endpoints:
            yield GraphSim(app, endpoints, clock, seals)


@contextlib.asynccontextmanager
async def _running(app: Application, state: Path, port: int) -> AsyncIterator[Endpoints]:
    tls = await asyncio.to_thread(ensure_certificates, state / "tls")
    with contextlib.ExitStack() as stack:
        plain, secure, admin = (stack.enter_context(_listening(number)) for number in (port, 0, 0))
        protocol = _recording(app.connections)
        common: dict[str, Any] = {
            "lifespan": "off", "log_config": None, "access_log": False, "server_header": False,
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

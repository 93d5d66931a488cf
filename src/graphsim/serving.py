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
from graphsim.assertions import Issuer
from graphsim.bulk import BulkDrive
from graphsim.certificates import ensure_certificates
from graphsim.clock import Clock, ServerClock, SystemClock
from graphsim.directory import DirectoryDrive
from graphsim.drives import MemoryDrive
from graphsim.endpoints import Endpoints, describe
from graphsim.fault_scripts import read_script, run_script
from graphsim.identity import remembered_identity
from graphsim.items import Profile
from graphsim.seals import Seals

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Mapping

    from graphsim.allowance import Allowance
    from graphsim.drive import Drive
    from graphsim.estate import Estate, Site
    from graphsim.faults import Faults
    from graphsim.requestlog import RequestLog
    from graphsim.tenancy import App, Directory, Person


class GraphSim:
    """A running graphsim; see :func:`serve`."""

    def __init__(self, app: Application, endpoints: Endpoints, clock: Clock) -> None:
        self.app = app
        self.endpoints = endpoints
        self.clock = clock

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
    def bulk(self) -> BulkDrive:
        """The first drive of generated files."""
        return next(drive for drive in self.app.drives if isinstance(drive, BulkDrive))

    @property
    def faults(self) -> Faults:
        """The scripted misbehaviour."""
        return self.app.faults

    @property
    def log(self) -> RequestLog:
        """The requests so far."""
        return self.app.log

    @property
    def allowance(self) -> Allowance:
        """What apps may spend, and have spent."""
        return self.app.allowance

    @property
    def skew(self) -> float:
        """Seconds by which the simulated service's clock is ahead; may be set."""
        return self.app.clock.skew

    @skew.setter
    def skew(self, seconds: float) -> None:
        self.app.clock.skew = seconds

    @property
    def directory(self) -> Directory:
        """Tenants, apps, people, and the knobs over tokens."""
        return self.app.entra.directory

    @property
    def estate(self) -> Estate:
        """Sites, drives and sharing links."""
        return self.app.estate

    def access_token(
        self,
        *,
        delegated: bool = False,
        person: Person | None = None,
        app: App | None = None,
        permissions: Iterable[str] | None = None,
    ) -> str:
        """Return a bearer token for Graph without the way through the token endpoint.

        Args:
            delegated: On behalf of the first person, rather than of the app itself.
            person: On behalf of this person.
            app: The first app by default.
            permissions: What the token carries; what the app has consent for by default.
        """
        app = app or self.directory.app
        who = person or (self.directory.person if delegated else None)
        carried = app.roles if permissions is None else set(permissions)
        tenant = who.tenant_id if who else self.directory.tenant_id
        return self.app.entra.grants.tokens.make(app, tenant, who, carried)

    def add_site(self, name: str, path: str | None = None, tenant_id: str | None = None) -> Site:
        """Make a team site; see :meth:`Application.add_site`."""
        return self.app.add_site(name, path, tenant_id)

    def add_library(self, site: Site, name: str, address: str | None = None) -> MemoryDrive:
        """Give a site another library; see :meth:`Application.add_library`."""
        return self.app.add_library(site, name, address)

    def add_person(
        self, name: str, display_name: str = "", *, onedrive: bool = True, tenant_id: str = ""
    ) -> Person:
        """Register a person; see :meth:`Application.add_person`."""
        return self.app.add_person(name, display_name, onedrive=onedrive, tenant_id=tenant_id)

    def add_app(self, name: str = "another app", **facts: Any) -> App:
        """Register an app; see :meth:`Application.add_app`."""
        return self.app.add_app(name, **facts)

    def library(self, site: Site, index: int = 0) -> MemoryDrive:
        """Return a library of a site; see :meth:`Application.library`."""
        return self.app.library(site, index)

    def add_issuer(self, url: str = "https://issuer.graphsim.invalid") -> Issuer:
        """Register an issuer of federated tokens."""
        issuer = Issuer(url, self.clock)
        self.directory.issuers[url] = issuer.public_pem
        return issuer


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
    sites: Mapping[str, Path | str] | None = None,
    people: tuple[str, ...] = (),
    faults: Path | None = None,
    bulk: tuple[int, int] | None = None,
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
        sites: Folders by the name of the team site whose library they are.
        people: User principal names of further people, each with an empty OneDrive.
        bulk: How many generated files, in how many folders, a drive called ``bulk`` has.
        faults: A file of faults and quirks; see :mod:`graphsim.fault_scripts`.

    Raises:
        OSError: The port is in use, or a folder or the file can't be read.
        ValueError: The file holds no script of faults.
    """
    with contextlib.ExitStack() as stack:
        if state is None:
            state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="graphsim-")))
        given = clock or SystemClock()
        clock = ServerClock(given)
        identity = await asyncio.to_thread(remembered_identity, state)
        seals = Seals(identity.secret)
        kind = Profile(profile)
        drives: list[Drive] = []
        for folder in folders:
            drive = await asyncio.to_thread(DirectoryDrive, Path(folder), kind, seals, clock, state)
            stack.callback(drive.close)
            drives.append(drive)
        names = memory or (() if folders or bulk else ("memory",))
        drives += [MemoryDrive(name, kind, seals, clock) for name in names]
        if bulk is not None:
            drives.append(BulkDrive("bulk", kind, seals, clock, files=bulk[0], folders=bulk[1]))
        size, life = page_size, url_lifetime
        directory = identity.directory(personal=kind is Profile.PERSONAL)
        app = Application(drives, directory, seals, clock, page_size=size, url_lifetime=life)
        for site, folder in (sites or {}).items():
            library = await asyncio.to_thread(
                DirectoryDrive, Path(folder), Profile.DOCUMENT_LIBRARY, seals, clock, state
            )
            stack.callback(library.close)
            app.place_library(site, library)
        for name in people:
            app.add_person(name)
        if faults is not None:
            run_script(await asyncio.to_thread(read_script, faults), app)
        async with _running(app, state, port) as endpoints:
            yield GraphSim(app, endpoints, given)


@contextlib.asynccontextmanager
async def _running(app: Application, state: Path, port: int) -> AsyncIterator[Endpoints]:
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

"""The ASGI application behind graphsim's http and https ports."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

from graphsim.addressing import parse_address
from graphsim.allowance import Allowance
from graphsim.bulk import BulkDrive
from graphsim.downloads import Downloads, is_download
from graphsim.drives import MemoryDrive
from graphsim.entra import Entra
from graphsim.errors import GraphError
from graphsim.estate import Estate
from graphsim.exchange import DroppedError, Exchange, Receive, Scope, Send
from graphsim.faults import Faults
from graphsim.graph import Graph
from graphsim.items import Profile, guid
from graphsim.pages import Pages
from graphsim.requestlog import RequestLog
from graphsim.tenancy import App, Person

if TYPE_CHECKING:
    from graphsim.clock import ServerClock
    from graphsim.drive import Drive
    from graphsim.estate import Site
    from graphsim.seals import Seals
    from graphsim.tenancy import Directory

Connections = dict[tuple[str, int], asyncio.Transport]
"""Open connections by the client's address, so that faults can cut them."""


class Application:
    """Graph, Entra and the download host as one application.

    Args:
        drives: The drives to serve; may grow while running.
        directory: The tenant.
        seals: Signs everything that graphsim hands out.
        clock: Time of changes and expiry.
        page_size: The most items on a page of delta or children.
        url_lifetime: Seconds a download URL is good for.
        download_host: Host and port of download URLs, if not the loopback's other name.
    """

    def __init__(
        self,
        drives: list[Drive],
        directory: Directory,
        seals: Seals,
        clock: ServerClock,
        *,
        page_size: int = 200,
        url_lifetime: float = 3600,
        download_host: str | None = None,
    ) -> None:
        self.estate = Estate(drives, directory)
        self.drives = self.estate.drives
        self.clock = clock
        self._seals = seals
        self.faults = Faults(clock)
        self.log = RequestLog()
        self.allowance = Allowance(clock)
        self.connections: Connections = {}
        self.entra = Entra(directory, seals, clock)
        self.downloads = Downloads(drives, seals, clock, url_lifetime, download_host)
        self.graph = Graph(self.estate, Pages(seals, page_size), self.downloads)

    def add_drive(self, name: str, profile: Profile = Profile.BUSINESS) -> MemoryDrive:
        """Make a drive in memory that belongs nowhere yet; see the methods below."""
        number = len(self.drives)
        drive = MemoryDrive(name, profile, self._seals, self.clock, f"{number}:{name}")
        self.drives.append(drive)
        return drive

    def add_bulk(
        self, name: str, files: int, folders: int, profile: Profile = Profile.BUSINESS
    ) -> BulkDrive:
        """Make a drive of generated files; it belongs nowhere yet."""
        drive = BulkDrive(name, profile, self._seals, self.clock, files=files, folders=folders)
        self.drives.append(drive)
        return drive

    def add_site(self, name: str, path: str | None = None, tenant_id: str | None = None) -> Site:
        """Make a team site with one library, "Documents" (``Shared Documents`` in addresses)."""
        site = self.estate.add_site(name, path, tenant_id)
        self.add_library(site, "Documents", "Shared Documents")
        return site

    def add_library(self, site: Site, name: str, address: str | None = None) -> MemoryDrive:
        """Give a site another library."""
        drive = self.add_drive(name, Profile.DOCUMENT_LIBRARY)
        site.put(drive, address or name)
        return drive

    def place_library(self, name: str, drive: Drive) -> Site:
        """Make a team site with a given drive as its library."""
        drive.name = "Documents"
        self.drives.append(drive)
        site = self.estate.add_site(name)
        site.put(drive, "Shared Documents")
        return site

    def add_person(
        self, name: str, display_name: str = "", *, onedrive: bool = True, tenant_id: str = ""
    ) -> Person:
        """Register a person by user principal name, with or without a OneDrive."""
        tenant = tenant_id or self.entra.directory.tenant_id
        identifier = str(uuid.UUID(guid(f"person:{name}")))
        person = Person(identifier, name, display_name or name.partition("@")[0], tenant)
        self.entra.directory.add_person(person)
        if onedrive:
            drive = self.add_drive("OneDrive")
            drive.owner = person
            person.drives.append(drive)
            self.estate.personal_site(person).put(drive, "Documents")
        return person

    def add_app(self, name: str = "another app", **facts: Any) -> App:
        """Register an app with no credential; ``roles``, ``scopes`` … as in :class:`App`."""
        identifier = str(uuid.UUID(guid(f"app:{name}")))
        return self.entra.directory.add_app(App(identifier, name, **facts))

    @staticmethod
    def library(site: Site, index: int = 0) -> MemoryDrive:
        """Return a library of a site that lives in memory.

        Raises:
            TypeError: It is a real folder.
        """
        drive = site.drives[index]
        if not isinstance(drive, MemoryDrive):
            raise TypeError(f"{drive.name} is a real folder.")
        return drive

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        if scope["type"] != "http":
            return
        client = scope.get("client")
        transport = self.connections.get(tuple(client)) if client else None
        exchange = Exchange(
            scope, receive, send,
            transport=transport, log=self.log, faults=self.faults, clock=self.clock,
            allowance=self.allowance, batch=scope.get("graphsim.batch"),
        )  # fmt: skip
        try:
            await self._answer(exchange)
        except GraphError as error:
            if exchange.entry.status:
                raise
            await self._refuse(exchange, error)
        except DroppedError:
            pass
        finally:
            self.log.end(exchange.entry)

    async def _answer(self, exchange: Exchange) -> None:
        if is_download(exchange.raw_path):
            await self.downloads.answer(exchange)
            return
        address = parse_address(exchange.raw_path)
        if address is None:
            await self.entra.answer(exchange)
            return
        caller = self.entra.caller(exchange.headers.get("authorization"))
        exchange.called_by(caller.app.client_id, caller.tenant_id)
        await self.graph.answer(exchange, address, caller)

    @staticmethod
    async def _refuse(exchange: Exchange, error: GraphError) -> None:
        try:
            await exchange.error(error)
        except DroppedError:
            return

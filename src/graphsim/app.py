"""The ASGI application behind graphsim's http and https ports."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from graphsim.addressing import parse_address
from graphsim.downloads import Downloads, is_download
from graphsim.entra import Entra
from graphsim.errors import GraphError
from graphsim.estate import Estate
from graphsim.exchange import DroppedError, Exchange, Receive, Scope, Send
from graphsim.faults import Faults
from graphsim.graph import Graph
from graphsim.pages import Pages
from graphsim.requestlog import RequestLog

if TYPE_CHECKING:
    from graphsim.clock import Clock
    from graphsim.drives import Drive
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
        clock: Clock,
        *,
        page_size: int = 200,
        url_lifetime: float = 3600,
        download_host: str | None = None,
    ) -> None:
        self.estate = Estate(drives, directory)
        self.drives = self.estate.drives
        self.clock = clock
        self.faults = Faults()
        self.log = RequestLog()
        self.connections: Connections = {}
        self.entra = Entra(directory, seals, clock)
        self.downloads = Downloads(drives, seals, clock, url_lifetime, download_host)
        self.graph = Graph(self.estate, Pages(seals, page_size), self.downloads)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request (ASGI)."""
        if scope["type"] != "http":
            return
        client = scope.get("client")
        transport = self.connections.get(tuple(client)) if client else None
        exchange = Exchange(
            scope, receive, send,
            transport=transport, log=self.log, faults=self.faults, clock=self.clock,
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
        await self.graph.answer(exchange, address, caller)

    @staticmethod
    async def _refuse(exchange: Exchange, error: GraphError) -> None:
        try:
            await exchange.error(error)
        except DroppedError:
            return

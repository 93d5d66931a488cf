"""The Source port on Microsoft Graph."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import quote

from drivefeed.domain.errors import NeedsAttention, NotFound, Transient
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import DeltaPage, DriveRef, RemoteDrive, RemoteItem
from drivefeed.sources.graph import wire
from drivefeed.sources.graph.auth import AppCredential
from drivefeed.sources.graph.budget import COST_MANY, COST_ONE, Budget, Lane
from drivefeed.sources.graph.client import GraphClient
from drivefeed.sources.graph.download import open_download
from drivefeed.sources.graph.errors import Scene
from drivefeed.sources.graph.gates import Gates
from drivefeed.sources.graph.http import READ_TIMEOUT
from drivefeed.sources.graph.items import item_of, page_of
from drivefeed.sources.graph.labels import is_labelled
from drivefeed.sources.graph.links import full_link, kept_link
from drivefeed.sources.graph.looking import Look
from drivefeed.sources.graph.own_permissions import has_own_permissions
from drivefeed.sources.graph.paced import PacedCredential
from drivefeed.sources.graph.places import names_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from contextlib import AbstractAsyncContextManager

    from drivefeed.ports import Clock, Download, Ids
    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.sources.graph.auth import Credential

_DRIVE_FIELDS = ("id", "driveType", "name", "webUrl")
# Since March 2025 personal drives leave shortcuts out of delta unless asked for them this way.
_PREFER = {"Prefer": "Include-Feature=AddToOneDrive"}
_SMALL_PAGE = 128 * 1024
"""Bytes of a page that is read on the event loop; takes a few milliseconds."""


class GraphSource:
    """Reads drives through the accounts it was given; see :class:`drivefeed.ports.Source`."""

    def __init__(
        self,
        accounts: Mapping[str, GraphAccount],
        *,
        clock: Clock,
        ids: Ids,
        gates: Gates | None = None,
        credential: Callable[[GraphAccount], Credential] | None = None,
        allowance: int | None = None,
        ru_share: float = 0.8,
        read_timeout: float = READ_TIMEOUT,
    ) -> None:
        """Prepare; nothing is imported or asked for before the first call.

        Args:
            accounts: by account id; looked at anew for every call, so entries may be added.
            clock: tells the time and waits.
            ids: request ids and jitter.
            gates: of each app in a tenant; by default of this process alone.
            credential: makes the sign-in of an account; by default the app's own.
            allowance: resource units a minute that Microsoft grants, where no gates are given.
            ru_share: the part of it that is spent then.
            read_timeout: seconds of silence after which a connection counts as broken.
        """
        self._accounts = accounts
        self._clock = clock
        self._ids = ids
        self._credential = credential or (lambda account: AppCredential(account, clock))
        budget = Budget(allowance, share=ru_share) if allowance else Budget(share=ru_share)
        self.gates = gates or Gates(clock, ids, budget=lambda _tenant: budget)
        self._clients: dict[str, GraphClient] = {}
        self._retired: list[GraphClient] = []
        """Clients with old settings, which may still be in use."""
        self._lock = asyncio.Lock()
        self._read_timeout = read_timeout
        self._lane = Lane.CHANGES

    def at(self, lane: Lane) -> GraphSource:
        """Return a view of this source whose requests take another lane; closes with this one."""
        view = GraphSource.__new__(GraphSource)
        view.__dict__.update(self.__dict__)
        view._lane = lane  # noqa: SLF001 (it is one of us)
        return view

    async def look(self, account_id: str) -> Look:
        """Return the way to look for sites, libraries and folders through an account.

        Raises:
            NeedsAttention: there is no such account.
        """
        return Look(await self._client(DriveRef(account_id, "")), self._lane)

    async def client(self, account_id: str) -> GraphClient:
        """Return an account's way to Graph, for probes.

        Raises:
            NeedsAttention: there is no such account, or its settings cannot be used.
        """
        return await self._client(DriveRef(account_id, ""))

    async def delta(self, drive: DriveRef, link: str | None) -> DeltaPage:
        """Fetch one page of changes of the whole drive."""
        client = await self._client(drive)
        base = client.account.base_url
        root = f"/drives/{quote(drive.drive_id, safe='!')}/root"
        # Without $top, which is a hint at best and once lost files (onedrive-api-docs#610).
        first = f"{root}/delta?$select={','.join(wire.SELECT)}"
        url = full_link(link or first, base)
        body = await client.read(
            lambda: client.raw_request(url),
            Scene.CHANGES if link else Scene.ENUMERATE,
            drive_id=drive.drive_id,
            lane=self._lane,
            cost=COST_ONE if link else COST_MANY,
            headers=_PREFER,
        )
        if len(body) > _SMALL_PAGE:
            page = await asyncio.to_thread(page_of, body, base)
        else:
            page = page_of(body, base)
        return replace(
            page,
            next_link=page.next_link and kept_link(page.next_link, base),
            delta_link=page.delta_link and kept_link(page.delta_link, base),
        )

    async def item(self, drive: DriveRef, item_id: str) -> RemoteItem:
        """Fetch one item by id."""
        client = await self._client(drive)
        body = await client.read(
            lambda: client.item_request(drive.drive_id, item_id, wire.SELECT),
            Scene.ITEM,
            drive_id=drive.drive_id,
            lane=self._lane,
            headers=_PREFER,
        )
        return _understood(body)

    async def item_by_path(self, drive: DriveRef, path: str) -> RemoteItem:
        """Resolve a path relative to the root; for set-up only, since paths change."""
        client = await self._client(drive)
        names = [quote(name, safe="") for name in names_of(path)]
        place = f":/{'/'.join(names)}:" if names else ""
        root = f"{client.account.base_url}/drives/{quote(drive.drive_id, safe='!')}/root"
        url = f"{root}{place}?$select={','.join(wire.SELECT)}"
        body = await client.read(
            lambda: client.raw_request(url),
            Scene.ITEM,
            drive_id=drive.drive_id,
            lane=self._lane,
            headers=_PREFER,
        )
        return _understood(body)

    async def drive(self, drive: DriveRef) -> RemoteDrive:
        """Describe a drive and its root."""
        client = await self._client(drive)
        body = await client.read(
            lambda: client.drive_request(drive.drive_id, _DRIVE_FIELDS),
            Scene.DRIVE,
            drive_id=drive.drive_id,
            lane=self._lane,
        )
        found = wire.read_drive(body)
        root = await self.item_by_path(drive, "")
        return RemoteDrive(
            drive_id=found.id,
            drive_type=found.drive_type or "",
            name=found.name or "",
            web_url=found.web_url,
            root_id=root.item_id,
        )

    async def is_labelled(self, drive: DriveRef, item_id: str) -> bool:
        """Tell whether a file has a sensitivity label."""
        client = await self._client(drive)
        return await is_labelled(client, drive.drive_id, item_id, self._lane)

    async def has_own_permissions(self, drive: DriveRef, item_id: str) -> bool:
        """Tell whether a file has other permissions than those that it inherits."""
        client = await self._client(drive)
        return await has_own_permissions(client, drive.drive_id, item_id, self._lane)

    def download(self, drive: DriveRef, item_id: str) -> AbstractAsyncContextManager[Download]:
        """Open the content of a file."""
        return self._download(drive, item_id)

    @asynccontextmanager
    async def _download(self, drive: DriveRef, item_id: str) -> AsyncIterator[Download]:
        client = await self._client(drive)
        async with open_download(client, drive.drive_id, item_id, self._lane) as download:
            yield download

    async def aclose(self) -> None:
        """Close connections."""
        async with self._lock:
            clients = [*self._clients.values(), *self._retired]
            self._clients.clear()
            self._retired.clear()
            for client in clients:
                await client.aclose()
            await self.gates.aclose()

    async def _client(self, drive: DriveRef) -> GraphClient:
        """Return the account's client, made anew where the account's settings changed."""
        account = self._accounts.get(drive.account_id)
        if account is None:
            raise NeedsAttention(
                f"The account {drive.account_id}, through which the drive was read, is not "
                "configured any more.",
                reason=Reason.MISCONFIGURED,
            )
        async with self._lock:
            client = self._clients.get(drive.account_id)
            if client is None or client.account != account:
                if client is not None:
                    self._retired.append(client)
                sign_in = self.gates.of_sign_in(account)
                client = await GraphClient.open(
                    account,
                    credential=PacedCredential(self._credential(account), sign_in, self._clock),
                    gate=self.gates.of(account),
                    clock=self._clock,
                    ids=self._ids,
                    read_timeout=self._read_timeout,
                )
                self._clients[drive.account_id] = client
            return client


def _understood(body: bytes) -> RemoteItem:
    item = item_of(body)
    if item is None:
        raise Transient("Microsoft Graph answered with an item that has no id.")
    if item.deleted:
        raise NotFound(f"Microsoft Graph answered that item {item.item_id} is deleted.")
    return item

"""A tenant with sites, libraries and people, and accounts that see more or less of it."""

from __future__ import annotations

import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from azure.core.credentials import AccessToken

from drivefeed.sources.graph import GraphAccount, GraphSource, SignedInUser
from graphsim.serving import GraphSim, serve
from integration.graph_source.kit import HurriedClock, PlainIds, account_of, sim_state

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.sources.graph.looking import Look
    from graphsim.drives import MemoryDrive
    from graphsim.estate import Site
    from graphsim.items import Item
    from graphsim.tenancy import Person

HOST = "https://graphsim.sharepoint.invalid"
MY = "https://graphsim-my.sharepoint.invalid"


class GivenToken:
    """A sign-in that took place elsewhere."""

    generation = 0

    def __init__(self, token: str) -> None:
        self._token = token

    async def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken(self._token, int(time.time()) + 3600)

    async def renew(self, *_: Any) -> None:
        raise AssertionError

    async def close(self) -> None:
        pass


@dataclass
class Town:
    """graphsim with a few places, and the way to look at them through several accounts."""

    sim: GraphSim
    accounts: dict[str, GraphAccount] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    folders: dict[str, tuple[MemoryDrive, Item]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.source = GraphSource(
            self.accounts,
            clock=HurriedClock(),
            ids=PlainIds(),
            allowance=1_000_000,
            credential=lambda account: GivenToken(self.tokens[account.account_id]),
        )
        self.join("app", person=None)

    def join(
        self,
        name: str,
        person: Person | None,
        permissions: tuple[str, ...] | None = None,
        **changes: Any,
    ) -> str:
        """Add an account: of the app, or of a person; return its id."""
        if person is not None:
            changes["sign_in"] = SignedInUser(person.id, person.name)
        account = account_of(self.sim, account_id=name, name=name, **changes)
        self.accounts[name] = account
        self.tokens[name] = self.sim.access_token(person=person, permissions=permissions)
        return name

    async def look(self, account: str = "app") -> Look:
        return await self.source.look(account)

    def folder(self, drive: MemoryDrive, path: str) -> Item:
        """Make folders, one in the other; return the last."""
        item = None
        for name in path.split("/"):
            parent = item.id if item else None
            found = drive.tree.resolve(item or drive.tree.root, [name])
            item = found or drive.create_folder(name, parent)
        assert item is not None
        self.folders[path] = (drive, item)
        return item

    def site(self, name: str, *libraries: str) -> tuple[Site, list[MemoryDrive]]:
        """Make a site with its usual library, and more of them."""
        site = self.sim.add_site(name)
        for library in libraries:
            self.sim.add_library(site, library)
        return site, site.drives


@asynccontextmanager
async def town(**options: Any) -> AsyncIterator[Town]:
    async with serve(state=sim_state(), profile="business", **options) as sim:
        made = Town(sim)
        try:
            yield made
        finally:
            await made.source.aclose()

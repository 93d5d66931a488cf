"""graphsim's application with no server around it: requests go straight into it."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from graphsim.app import Application
from graphsim.clock import ManualClock, ServerClock
from graphsim.drives import MemoryDrive
from graphsim.identity import Identity
from graphsim.items import Profile
from graphsim.seals import Seals

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from graphsim.drive import Drive
    from graphsim.faults import Fault

BASE = "http://graph.test"


@dataclass
class Desk:
    """An application with one drive, and a client who may read it."""

    app: Application
    drive: MemoryDrive
    clock: ManualClock
    client: httpx.AsyncClient

    @property
    def root(self) -> str:
        return f"{BASE}/v1.0/drives/{self.drive.id}"

    def fault(self, kind: str, **options: Any) -> Fault:
        return self.app.faults.add(kind, **options)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        url = path if path.startswith("http") else f"{self.root}/{path}"
        return await self.client.get(
            url, headers={k.replace("_", "-"): v for k, v in headers.items()}
        )

    async def json(self, path: str, **headers: str) -> dict[str, Any]:
        answer = await self.get(path, **headers)
        answer.raise_for_status()
        shown: dict[str, Any] = answer.json()
        return shown

    async def round(self, path: str = "root/delta", most: int = 50) -> list[dict[str, Any]]:
        """Return the pages of a round, or of a list, up to its end."""
        pages, url = [], path
        for _ in range(most):
            pages.append(await self.json(url))
            if "@odata.nextLink" not in pages[-1]:
                return pages
            url = pages[-1]["@odata.nextLink"]
        raise AssertionError(f"There is no end after {most} pages.")

    async def items(self, path: str = "root/delta") -> list[dict[str, Any]]:
        return [one for page in await self.round(path) for one in page["value"]]

    async def names(self, path: str = "root/delta") -> list[str]:
        return [one.get("name") or one["id"] for one in await self.items(path)]

    async def latest(self) -> str:
        """Return a link to what changes from now on."""
        link: str = (await self.json("root/delta?token=latest"))["@odata.deltaLink"]
        return link


@asynccontextmanager
async def desk(
    profile: Profile = Profile.BUSINESS, *, page_size: int = 3, drive: Drive | None = None
) -> AsyncIterator[Desk]:
    manual = ManualClock()
    clock = ServerClock(manual)
    seals = Seals(b"secret")
    identity = Identity(b"secret", "tenant", "client", "secret", "user")
    own = drive or MemoryDrive("memory", profile, seals, clock)
    directory = identity.directory(personal=profile is Profile.PERSONAL)
    directory.token_lifetime = 10**9
    app = Application([own], directory, seals, clock, page_size=page_size)
    token = app.entra.grants.tokens.make(
        directory.app, directory.tenant_id, None, directory.app.roles
    )
    headers = {"Authorization": f"Bearer {token}"}
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers) as client:
        assert isinstance(own, MemoryDrive)
        yield Desk(app, own, manual, client)

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from drivefeed.catalog.api_keys import FreshKey, create_key
from drivefeed.catalog.connecting import ensure_org
from drivefeed.catalog.engine import open_catalog
from drivefeed.domain.lifecycle import Event
from drivefeed.domain.reasons import Reason
from drivefeed.web.server import StatusPage
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.catalog.engine import Catalog

CANARY = "Redundancies"
"""Is in the name of a file, of a folder and of a connection of the owner."""


@dataclass
class House:
    """A served status page over a catalog with an owner, who has files, and a stranger."""

    page: StatusPage
    rig: Rig
    key: FreshKey
    strange_key: FreshKey
    clock: ManualClock

    @property
    def connection_id(self) -> str:
        return self.rig.connections["docs"]

    def client(self, key: FreshKey | None, **options: Any) -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {key.text}"} if key else {}
        headers |= options.pop("headers", {})
        # Reading certificates would take most of a test's time, and http needs none.
        options |= {"verify": False, "timeout": 20}
        return httpx.AsyncClient(base_url=self.page.url, headers=headers, **options)

    async def get(self, address: str, key: FreshKey | None = None, **options: Any) -> Any:
        async with self.client(key or self.key) as client:
            return await client.get(address, **options)


async def hits(org_name: str, query: str, limit: int) -> list[dict[str, Any]]:
    """A search that finds one document of the owner, and nothing for others."""
    if org_name != "owner" or query == "nothing":
        return []
    return [
        {
            "path": f"{CANARY}/plan.txt",
            "page": limit,
            "snippet": "<b>the plan</b>",
            "highlights": [[3, 11]],
            "score": 0.5,
            "document_id": "unknown",
            "web_url": None,
        }
    ]


@asynccontextmanager
async def ticking(clock: ManualClock) -> AsyncIterator[None]:
    """Turn the clock a second on, again and again, until the block ends."""

    async def tick() -> None:
        while True:
            clock.turn(seconds=1)
            await asyncio.sleep(0.02)

    ticks = asyncio.create_task(tick())
    try:
        yield
    finally:
        ticks.cancel()


@asynccontextmanager
async def serving(catalog: Catalog, **options: Any) -> AsyncIterator[StatusPage]:
    page = StatusPage(catalog, host="127.0.0.1", port=0, seek=hits, **options)
    running = asyncio.create_task(page.run())
    try:
        yield page
    finally:
        await page.close()
        await running


async def furnished(catalog: Catalog) -> Rig:
    """An owner's drive: one file searchable, one failed, one skipped, one under way."""
    rig = await Rig.make(catalog, name="owner")
    await rig.connect()
    await rig.scan()
    files = [
        file("a", "sub", content="1", name="Good.txt"),
        file("b", "docs", content="2", name=f"<i>{CANARY}<i>.txt"),
        file("c", "docs", content="3", name="Film.txt", size=0),
        file("d", "docs", content="4", name="Waiting.txt"),
    ]
    await rig.enumerate([ROOT, folder("docs"), folder("sub", "docs", CANARY), *files])
    await rig.bring_live("a", pages=7)
    one = await rig.import_of("b")
    await rig.advance(one, Event.REFUSED, reason=Reason.CORRUPT, detail="not a <zip>")
    return rig


@pytest.fixture
async def catalog(tmp_path: Path) -> AsyncIterator[Catalog]:
    whole = await open_catalog(
        new_catalog(tmp_path / "catalog.db"),
        clock=ManualClock(),
        ids=CountedIds(),
        checkpoint=no_checkpoint,
    )
    yield whole
    await whole.aclose()


@pytest.fixture
async def house(catalog: Catalog) -> AsyncIterator[House]:
    rig = await furnished(catalog)
    strange_org = await ensure_org(catalog, "stranger")
    key = await create_key(catalog, org_id=rig.org_id, name="owner's")
    strange_key = await create_key(catalog, org_id=strange_org, name="stranger's")
    async with serving(catalog) as page:
        clock = catalog.clock
        assert isinstance(clock, ManualClock)
        yield House(page, rig, key, strange_key, clock)

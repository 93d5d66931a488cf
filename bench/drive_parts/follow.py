"""One drive followed by the real parts: Graph source, catalog, runner, discover."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import psutil
from sqlalchemy import func, select

from drivefeed.catalog.connecting import connect, ensure_account, ensure_drive, ensure_org
from drivefeed.catalog.sources import drive_in, wake_drive
from drivefeed.catalog.tables import documents, items, reminders
from drivefeed.domain.identity import job_id
from drivefeed.domain.model import Policy
from drivefeed.domain.remote import DriveRef
from drivefeed.ports import Stage
from drivefeed.services.direct import DirectDelivery
from drivefeed.sources.graph import ClientSecret, GraphAccount, GraphSource
from drivefeed.stages.breaker import Breakers
from drivefeed.stages.discover import Admit, Discover
from drivefeed.stages.runner import Runner
from drivefeed.system import SystemClock, SystemIds

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.budget import Lane
    from drivefeed.domain.remote import DeltaPage

MIB = 1 << 20
_PLENTY = 1_000_000_000
"""Resource units a minute: what Microsoft would make us wait is not what is measured."""
POLICIES = {
    "few": Policy(include=("*00.txt",)),
    "none": Policy(types=("pdf",)),
    "all": Policy(),
}
"""By what is measured: of the whole drive one file in a hundred is admitted, none, or all."""


@dataclass
class Watched:
    """A source that is looked at: what came, and how much memory this process has by then."""

    inner: Any
    told: Callable[[int], None]
    every: int = 100_000
    items: int = 0
    pages: int = 0
    waited: float = 0.0
    peak: int = 0
    resident: dict[int, int] = field(default_factory=dict)
    """MiB by items; the most of what lies between two marks."""

    def at(self, lane: Lane) -> Watched:
        self.inner = self.inner.at(lane)
        return self

    async def delta(self, drive: DriveRef, link: str | None) -> DeltaPage:
        began = time.perf_counter()
        page: DeltaPage = await self.inner.delta(drive, link)
        self.waited += time.perf_counter() - began
        self.items += len(page.items)
        self.pages += 1
        self.peak = max(self.peak, psutil.Process().memory_info().rss)
        if self.items // self.every > (self.items - len(page.items)) // self.every:
            self.resident[self.items // self.every * self.every] = self.peak // MIB
            self.peak = 0
        self.told(self.items)
        return page

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


@dataclass
class Followed:
    """A drive that is connected, and what it takes to bring it up to date."""

    catalog: Catalog
    source: Watched
    runner: Runner
    org_id: str
    drive_id: str

    @classmethod
    async def begin(
        cls, catalog: Catalog, sim: dict[str, Any], policy: Policy, told: Callable[[int], None]
    ) -> Followed:
        """Connect the bulk drive's root."""
        clock, ids = SystemClock(), SystemIds()
        org_id = await ensure_org(catalog, "bench")
        account_id = await ensure_account(catalog, org_id, "bench")
        account = GraphAccount(
            account_id,
            "bench",
            sim["tenant_id"],
            sim["client_id"],
            ClientSecret(sim["client_secret"]),
            authority=sim["login_url"],
            graph_url=sim["graph_url"],
            ca_file=sim["ca_file"],
        )
        source = GraphSource({account_id: account}, clock=clock, ids=ids, allowance=_PLENTY)
        remote = await source.drive(DriveRef(account_id, sim["drive_id"]))
        drive_id = await ensure_drive(
            catalog,
            org_id=org_id,
            account_id=account_id,
            cloud="global",
            remote=remote,
            interval_ms=60_000,
        )
        runner = Runner(catalog, Breakers(clock, ids), owner="bench")
        followed = cls(catalog, Watched(source, told), runner, org_id, drive_id)
        connection_id = await connect(
            catalog, drive_id=drive_id, root_item_id=remote.root_id, name="bulk", policy=policy
        )
        await followed._run(Admit(catalog, source), connection_id)
        return followed

    async def sync(self) -> float:
        """Make the drive due and follow it until it rests; return the seconds."""
        async with self.catalog.write("wake") as connection:
            drive = await drive_in(connection, self.drive_id)
            await wake_drive(connection, drive, due_at=self.catalog.clock.now())
        began = time.perf_counter()
        stage = Discover(self.catalog, self.source)
        while await self._run(stage, self.drive_id):
            pass
        return time.perf_counter() - began

    async def _run(self, stage: Any, subject_id: str) -> bool:
        """Run what is due of a subject as a worker would; False where nothing is."""
        async with self.catalog.read() as connection:
            found = await connection.execute(
                select(reminders).where(reminders.c.subject_id == subject_id)
            )
            row = found.mappings().one()
        if row["due_at"] is None:
            return False
        name = Stage(row["stage"])
        payload = {**json.loads(row["payload"]), "number": row["number"]}
        delivery = DirectDelivery(name, job_id(name, subject_id, row["number"]), payload, 1, 1)
        await self.runner.bind(stage)(delivery)
        return True

    async def count(self) -> dict[str, int]:
        """Count what the catalog holds."""
        async with self.catalog.read() as connection:
            return {
                table.name: (
                    await connection.execute(select(func.count()).select_from(table))
                ).scalar_one()
                for table in (items, documents)
            }


async def change(sim: dict[str, Any], count: int, seed: int) -> dict[str, int]:
    """Have graphsim make changes, spread over the drive; six of ten are new contents."""
    url = f"{sim['admin_url']}/drives/{sim['drive_id']}/bulk-changes"
    async with httpx.AsyncClient(timeout=120) as client:
        answer = await client.post(url, params={"count": count, "seed": seed})
    made: dict[str, int] = answer.raise_for_status().json()
    return made

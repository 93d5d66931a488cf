"""One connected drive, end to end: a graphsim over HTTP, a catalog, and the stages played by hand.

There is no daemon and no queue. The outbox says what is due, the real runner runs the real stages
of discovering, admitting and copying, and the clock moves when the test moves it. What the
ingestion backend does is told to the catalog as facts.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from azure.core.credentials import AccessToken
from sqlalchemy import select

from drivefeed.catalog.connecting import connect, ensure_account, ensure_drive, ensure_org
from drivefeed.catalog.deliveries import Reminder
from drivefeed.catalog.engine import migrate, open_catalog, sqlite_url
from drivefeed.catalog.files import fetch, placed
from drivefeed.catalog.imports import advance
from drivefeed.catalog.sources import fetch_drive, wake_drive
from drivefeed.catalog.tables import connections, coverage, documents, imports, items, reminders
from drivefeed.catalog.tree import item_of, lineages
from drivefeed.domain.identity import job_id
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.model import Policy
from drivefeed.domain.remote import DriveRef, RemoteDrive
from drivefeed.ports import Stage
from drivefeed.services.direct import DirectDelivery
from drivefeed.sources.graph import ClientSecret, GraphAccount, GraphSource
from drivefeed.stages.breaker import Breakers
from drivefeed.stages.discover import Admit, Discover
from drivefeed.stages.runner import Runner
from drivefeed.stages.transfer import Transfer
from drivefeed.stores.directory import DirectoryStore
from graphsim.serving import serve
from integration.graph_source.kit import HurriedClock, sim_state
from support.clock import CountedIds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.model import Import
    from graphsim.drives import MemoryDrive
    from graphsim.items import Item, Profile
    from graphsim.serving import GraphSim

FREE = Policy(brake_count=100_000, brake_floor=100_000)
"""A policy without a brake."""

_STAGES = ("admit", "discover", "withdraw", "publish", "transfer", "submit")
_ATTEMPTS = 5
_FIRST_WAIT_MS = 5_000
_MOST_RUNS = 3_000


@cache
def template() -> Path:
    """A migrated, empty catalog, made once for each process."""
    folder = Path(tempfile.mkdtemp(prefix="engine-catalog-"))
    path = folder / "catalog.db"
    migrate(sqlite_url(path))
    return path


class SimCredential:
    """A sign-in without the way through Entra, which is another test's matter."""

    generation = 0

    def __init__(self, sim: GraphSim, **of: Any) -> None:
        self._token = sim.access_token(**of)

    async def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken(self._token, int(time.time()) + 3600)

    async def renew(self, generation: int, claims: str | None) -> None:
        """There is no other token."""

    async def close(self) -> None:
        """Nothing is open."""


@dataclass
class Stand:
    """See the module; made by :func:`standing`."""

    sim: GraphSim
    drive: MemoryDrive
    catalog: Catalog
    clock: HurriedClock
    source: GraphSource
    runner: Runner
    stages: dict[str, Any]
    org_id: str
    drive_id: str
    accounts: dict[str, GraphAccount]
    passed: list[str]
    """Checkpoints passed so far."""
    connections: dict[str, str] = field(default_factory=dict)
    failed: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Attempts and when the next one is due, by subject."""
    errors: list[str] = field(default_factory=list)
    live_needs_backend: bool = True

    # --- what people do ---------------------------------------------------------------------

    async def connect(self, root: Item | str, policy: Policy = FREE) -> str:
        """Connect a folder, or change its policy."""
        key = root if isinstance(root, str) else root.id
        self.connections[key] = await connect(
            self.catalog,
            drive_id=self.drive_id,
            root_item_id=key,
            name=f"folder {len(self.connections)}",
            policy=policy,
        )
        return self.connections[key]

    # --- time -------------------------------------------------------------------------------

    async def sync(self) -> None:
        """A round of the drive is due, and all that follows from it is done."""
        await self.wake()
        await self.work()

    async def wake(self) -> None:
        """The schedule makes a round due."""
        self.clock.advance(1)
        async with self.catalog.write("wake") as connection:
            await wake_drive(connection, await self.row(), due_at=self.clock.now())

    async def work(self) -> None:
        """Do what is due until nothing is; what failed waits for its next attempt."""
        for _ in range(_MOST_RUNS):
            due = await self._due()
            if not due:
                return
            for one in due:
                await self._do(one)
        raise AssertionError("work never ends")

    async def pass_time(self, seconds: float, *, step: float = 60.0) -> None:
        """Turn the clock and do what becomes due meanwhile."""
        until = self.clock.now() + round(seconds * 1000)
        while self.clock.now() < until:
            self.clock.advance(min(step, (until - self.clock.now()) / 1000))
            await self.work()

    async def _due(self) -> list[Reminder]:
        """What is due of the stage that comes first."""
        now = self.clock.now()
        asked = select(reminders).where(
            reminders.c.due_at <= now, reminders.c.owner.is_(None), reminders.c.sent_at.is_(None)
        )
        async with self.catalog.read() as connection:
            rows = list((await connection.execute(asked)).mappings())
        free = [row for row in rows if self.failed.get(row["subject_id"], (0, 0))[1] <= now]
        first = min((_STAGES.index(row["stage"]) for row in free), default=None)
        return [
            Reminder(
                *(row["subject_id"], row["org_id"], row["stage"], row["number"]),
                *(row["due_at"], row["lane"], json.loads(row["payload"])),
            )
            for row in free
            if _STAGES.index(row["stage"]) == first
        ]

    async def _do(self, one: Reminder) -> None:
        if one.stage not in self.stages:
            await self._play(one)
            return
        attempt = self.failed.get(one.subject_id, (0, 0))[0] + 1
        delivery = DirectDelivery(
            Stage(one.stage),
            job_id(one.stage, one.subject_id, one.number),
            {**one.payload, "number": one.number},
            attempt,
            _ATTEMPTS,
        )
        try:
            await self.runner.bind(self.stages[one.stage])(delivery)
        except Exception as error:  # noqa: BLE001 - the runner recorded it, as in the daemon
            self.errors.append(str(error))
            after = 0 if attempt == _ATTEMPTS else attempt
            self.failed[one.subject_id] = (after, self.clock.now() + _FIRST_WAIT_MS * attempt)
        else:
            self.failed.pop(one.subject_id, None)

    async def _play(self, one: Reminder) -> None:
        """What the backend and the index would do, as facts."""
        document, each, file = await fetch(self.catalog, one.subject_id)
        if one.stage == "submit":
            if each.state is State.STORED:
                each = await self._advance(each, Event.SUBMITTING)
            await self._advance(each, Event.SETTLED, facts={"pages": 1, "shown": True})
        elif one.stage == "publish":
            await placed(self.catalog, document.document_id, file)
            shown = each.as_live == document.live
            await self._advance(each, Event.PUBLISHED, facts={"shown": shown})
        else:
            if each.state is State.SETTLED:
                each = await self._advance(each, Event.UNWANTED)
            await self._advance(each, Event.REMOVED, reason=each.reason)

    async def _advance(self, one: Import, event: Event, **more: Any) -> Import:
        return await advance(self.catalog, one.import_id, event, round_=one.round, **more)

    # --- what the catalog says --------------------------------------------------------------

    async def row(self) -> Drive:
        """The drive as the catalog knows it."""
        return await fetch_drive(self.catalog, self.drive_id)

    async def rows(self, table: Any, *where: Any) -> list[dict[str, Any]]:
        """Rows of a table."""
        async with self.catalog.read() as connection:
            found = await connection.execute(select(table).where(*where))
            return [dict(row) for row in found.mappings()]

    async def tree(self) -> dict[str, str]:
        """Paths of the wanted documents in the drive, each with its listed hash or version."""
        wanted = await self.wanted()
        async with self.catalog.read() as connection:
            rows = await connection.execute(
                select(items).where(items.c.drive_id == self.drive_id, items.c.item_id.in_(wanted))
            )
            found = [item_of(row) for row in rows.mappings()]
            lines = await lineages(connection, self.drive_id, found)
        paths = {}
        for one in found:
            names = [*(each.name for each in lines[one.item_id].folders[1:]), one.name]
            paths["/".join(names)] = wanted[one.item_id]
        return paths

    async def wanted(self) -> dict[str, str]:
        """Version keys of the wanted imports, without their prefix, by item."""
        asked = (
            select(documents.c.item_id, imports.c.version_key)
            .join(imports, imports.c.id == documents.c.wanted_import_id)
            .where(documents.c.drive_id == self.drive_id)
        )
        async with self.catalog.read() as connection:
            rows = await connection.execute(asked)
            return {row.item_id: row.version_key.partition(":")[2] for row in rows}

    async def live(self) -> set[str]:
        """Items whose documents search finds."""
        rows = await self.rows(documents, documents.c.drive_id == self.drive_id)
        return {row["item_id"] for row in rows if row["live_import_id"]}

    async def names(self) -> set[str]:
        """Names of the documents that search finds."""
        rows = await self.rows(documents, documents.c.drive_id == self.drive_id)
        return {row["name"] for row in rows if row["live_import_id"]}

    async def coverage(self, root: Item | str) -> dict[str, str | None]:
        """Skip reasons by item; None where the connection admits it."""
        key = self.connections[root if isinstance(root, str) else root.id]
        rows = await self.rows(coverage, coverage.c.connection_id == key)
        return {row["item_id"]: None if row["admitted"] else row["reason"] for row in rows}

    async def attention(self, root: Item | str) -> str | None:
        """Why a connection waits for a person."""
        key = self.connections[root if isinstance(root, str) else root.id]
        (row,) = await self.rows(connections, connections.c.id == key)
        return row["attention"]

    # --- what graphsim saw ------------------------------------------------------------------

    def asked(self, op: str) -> list[Any]:
        """Requests of a kind so far, the refused ones too."""
        return [one for one in self.sim.log.entries() if one.op == op]

    def downloads(self) -> int:
        """Contents that were sent whole."""
        return sum(one.status in {200, 206} for one in self.asked("download"))


@asynccontextmanager
async def simulator(page_size: int = 200) -> AsyncIterator[GraphSim]:
    async with serve(page_size=page_size, state=sim_state()) as sim:
        yield sim


@asynccontextmanager
async def standing(
    sim: GraphSim,
    folder: Path,
    *,
    drive: MemoryDrive | None = None,
    catalog: Catalog | None = None,
    clock: HurriedClock | None = None,
    profile: Profile | None = None,
) -> AsyncIterator[Stand]:
    """Put a stand up.

    Args:
        folder: where the catalog and the objects are.
        drive: the drive to follow; the simulator's own by default.
        catalog: one that is open already, for many stands after each other.
        profile: makes a drive of this kind instead.
    """
    if profile is not None:
        drive = sim.app.add_drive("Drive", profile)
    drive = drive or sim.memory
    clock = clock or HurriedClock()
    ids = CountedIds()
    passed: list[str] = []
    mine = catalog is None
    if catalog is None:
        catalog = await stored_catalog(folder, clock, ids, passed.append)
    org_id = await ensure_org(catalog, f"org of {drive.id}")
    account_id = await ensure_account(catalog, org_id, "account")
    drive_id = await ensure_drive(
        catalog,
        org_id=org_id,
        account_id=account_id,
        cloud="global",
        remote=RemoteDrive(drive.id, drive.profile.value, drive.name, None, drive.tree.root_id),
        interval_ms=60_000,
    )
    accounts = {account_id: plain_account(sim, account_id)}
    credential = SimCredential(sim)
    source = GraphSource(
        accounts,
        clock=clock,
        ids=ids,
        credential=lambda _: credential,
        allowance=100_000_000,
        read_timeout=5.0,
    )
    store = DirectoryStore(folder / "objects")
    stages = {
        "discover": Discover(catalog, source),
        "admit": Admit(catalog, source),
        "transfer": Transfer(catalog, source, store),
    }
    breakers = Breakers(clock, ids)
    runner = Runner(catalog, breakers, owner="stand")
    stand = Stand(
        sim, drive, catalog, clock, source, runner, stages, org_id, drive_id, accounts, passed
    )
    try:
        yield stand
    finally:
        await source.aclose()
        await store.aclose()
        if mine:
            await catalog.aclose()


async def stored_catalog(
    folder: Path, clock: HurriedClock, ids: CountedIds, checkpoint: Callable[[str], None]
) -> Catalog:
    """Open a copy of the empty catalog."""
    path = folder / "catalog.db"
    await asyncio.to_thread(shutil.copyfile, template(), path)
    return await open_catalog(sqlite_url(path), clock=clock, ids=ids, checkpoint=checkpoint)


def plain_account(sim: GraphSim, account_id: str) -> GraphAccount:
    return GraphAccount(
        account_id,
        "account",
        sim.endpoints.tenant_id,
        sim.endpoints.client_id,
        ClientSecret("unused"),
        graph_url=sim.endpoints.graph_url,
    )


def ref(stand: Stand) -> DriveRef:
    """How the stand's source is asked for its drive."""
    return DriveRef(next(iter(stand.accounts)), stand.drive.id)


@dataclass
class Docs:
    """A small drive in the state after its first sync."""

    stand: Stand
    docs: Item
    sub: Item
    other: Item
    a: Item
    b: Item

    @classmethod
    async def make(cls, stand: Stand, policy: Policy = FREE) -> Docs:
        drive = stand.drive
        docs = drive.create_folder("docs")
        sub = drive.create_folder("sub", docs.id)
        other = drive.create_folder("other")
        a = drive.create_file("a.txt", b"contents of a", docs.id)
        b = drive.create_file("b.txt", b"contents of b", sub.id)
        await stand.connect(docs, policy)
        await stand.sync()
        assert set(await stand.tree()) == {"docs/a.txt", "docs/sub/b.txt"}
        assert stand.downloads() == 2
        return cls(stand, docs, sub, other, a, b)

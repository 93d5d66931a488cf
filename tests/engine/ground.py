"""What examples of the state machine share: one simulator, one catalog, one source, one clock.

Opening them costs most of a second, so they stay open, and are made what they were when they were
new: no row, no object, no fault, no count. An example is therefore the same whatever came before
it, and what is printed of one that failed plays again. All that is drawn beside its steps (what a
fault strikes, jitter) follows from its seed. Everything runs in one event loop that stands still
between the steps.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
import tempfile
from contextlib import AsyncExitStack
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog
from azure.core.credentials import AccessToken

from drivefeed.catalog.connecting import ensure_account, ensure_drive, ensure_org
from drivefeed.domain.remote import RemoteDrive
from drivefeed.sources.graph import GraphSource
from drivefeed.stages.breaker import Breakers
from drivefeed.stages.discover import Admit, Discover
from drivefeed.stages.runner import Runner
from drivefeed.stages.transfer import Transfer
from drivefeed.stores.directory import DirectoryStore
from drivefeed.stores.keys import PARTIAL
from engine.at_once import run_at_once
from graphsim.serving import serve
from integration.graph_source.kit import HurriedClock, sim_state
from quirks.stand import Stand, plain_account, stored_catalog
from support.clock import CountedIds

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from graphsim.drives import MemoryDrive
    from graphsim.items import Profile
    from graphsim.serving import GraphSim

_SHORT_OF_AN_HOUR = 1800.0
_BETWEEN_EXAMPLES = 86_400.0
"""Seconds after which the source's gates know nothing of the example before."""


class SimClock:
    """The simulator's time: that of the engine, so that delays pass when the test says so."""

    def __init__(self, clock: HurriedClock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.now() / 1000


class FreshCredential:
    """A token of the simulator, made anew while time flies."""

    generation = 0

    def __init__(self, sim: GraphSim) -> None:
        self._sim = sim
        self._token = ""
        self._made = 0.0

    async def get_token(self, *_: str, **__: Any) -> AccessToken:
        now = self._sim.clock.now()
        if not self._token or now - self._made > _SHORT_OF_AN_HOUR:
            self._token, self._made = self._sim.access_token(), now
        return AccessToken(self._token, int(now) + 3600)

    async def renew(self, *_: object) -> None:
        self._token = ""

    async def close(self) -> None:
        """Nothing is open."""


class Ground:
    """The shared parts, open until the process ends."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.stack = AsyncExitStack()
        self.clock = HurriedClock()
        self.ids = CountedIds()
        self.passed: list[str] = []
        memory = Path("/dev/shm")
        place = memory if memory.is_dir() else None
        self.folder = Path(tempfile.mkdtemp(prefix="engine-ground-", dir=place))
        self.run(self._open())
        self.rows = sqlite3.connect(self.folder / "catalog.db")
        self.fresh = sqlite3.connect(":memory:")
        self.rows.backup(self.fresh)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    async def _open(self) -> None:
        structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
        enter = self.stack.enter_async_context
        self.sim = await enter(serve(page_size=4, state=sim_state(), clock=SimClock(self.clock)))
        self.catalog = await stored_catalog(self.folder, self.clock, self.ids, self.passed.append)
        run_at_once(self.catalog._engine)
        self.org_id = await ensure_org(self.catalog, "org")
        self.account_id = await ensure_account(self.catalog, self.org_id, "account")
        credential = FreshCredential(self.sim)
        self.accounts = {self.account_id: plain_account(self.sim, self.account_id)}
        self.source = GraphSource(
            self.accounts,
            clock=self.clock,
            ids=self.ids,
            credential=lambda _: credential,
            allowance=100_000_000,
            # No fault hangs: only a machine that stands still could take so long.
            read_timeout=300.0,
        )
        store = DirectoryStore(self.folder / "objects")
        self.stages = {
            "discover": Discover(self.catalog, self.source),
            "admit": Admit(self.catalog, self.source),
            "transfer": Transfer(self.catalog, self.source, store),
        }

    def _begin_again(self, seed: int) -> None:
        """Make everything what it was before the first example."""
        self.fresh.backup(self.rows)
        for one in (self.folder / "objects").iterdir():
            if one.name != PARTIAL:
                shutil.rmtree(one)
        self.passed.clear()
        self.clock.slept.clear()
        self.clock.advance(_BETWEEN_EXAMPLES)
        self.ids.begin_again(seed)
        self.sim.faults.begin_again(seed)
        self.sim.log.clear()
        del self.sim.app.drives[1:]

    async def new_drive(self, profile: Profile, seed: int) -> Stand:
        """A new drive that the catalog knows, and nothing of it connected."""
        self._begin_again(seed)
        drive: MemoryDrive = self.sim.app.add_drive(f"Drive {seed}", profile)
        drive.readers.add(self.sim.directory.person.id)
        drive_id = await ensure_drive(
            self.catalog,
            org_id=self.org_id,
            account_id=self.account_id,
            cloud="global",
            remote=RemoteDrive(drive.id, profile.value, drive.name, None, drive.tree.root_id),
            interval_ms=60_000,
        )
        # What a part that is down was like in the example before is over.
        runner = Runner(self.catalog, Breakers(self.clock, self.ids), owner="ground")
        return Stand(
            *(self.sim, drive, self.catalog, self.clock, self.source, runner, self.stages),
            *(self.org_id, drive_id, self.accounts, self.passed),
        )

    def close(self) -> None:
        """Close everything and remove the folder."""

        async def end() -> None:
            await self.source.aclose()
            self.rows.close()
            self.fresh.close()
            await self.catalog.aclose()
            await self.stack.aclose()

        with contextlib.suppress(RuntimeError):
            self.run(end())
        self.loop.close()
        structlog.reset_defaults()
        shutil.rmtree(self.folder, ignore_errors=True)


@cache
def ground() -> Ground:
    return Ground()

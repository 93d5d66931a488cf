"""drivefeed's parts in this process against a graphsim in this process, without queue and index.

Stages are run one after the other as their reminders become due. What the ingestion backend would
do is played: nothing is embedded.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from drivefeed.bootstrap import Surroundings, open_parts
from drivefeed.catalog import deliveries
from drivefeed.catalog.imports import advance
from drivefeed.catalog.tables import imports
from drivefeed.domain.gate import OPEN, Gate
from drivefeed.domain.lifecycle import Event, State
from drivefeed.ports import Stage
from drivefeed.settings import Settings
from drivefeed.settings_folders import AccountSettings
from drivefeed.stages.breaker import Breakers
from drivefeed.stages.discover import Admit, Discover
from drivefeed.stages.runner import Runner
from drivefeed.stages.transfer import Transfer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.bootstrap import Parts
    from graphsim.serving import GraphSim

_PLAYED = (Stage.DISCOVER, Stage.ADMIT, Stage.TRANSFER)


def settings_for(sim: GraphSim, folder: Path, **more: Any) -> Settings:
    """Return settings with one account, ``sim``, that reads a graphsim."""
    ends = sim.endpoints
    account = AccountSettings(
        name="sim",
        tenant_id=ends.tenant_id,
        client_id=ends.client_id,
        client_secret=ends.client_secret,  # type: ignore[arg-type] - pydantic makes it a secret
        authority=ends.login_url,
        graph_url=ends.graph_url,
        ca_file=ends.ca_file,  # type: ignore[arg-type] - pydantic makes it a path
    )
    return Settings(data_dir=folder, accounts=[account], **{"ru_per_minute": 1_000_000, **more})


@dataclass
class Job:
    """A delivery that comes from no queue."""

    stage: Stage
    job_id: str
    payload: dict[str, Any]
    attempt: int = 1
    attempts: int = 1

    async def progress(self, percent: int) -> None:
        """Nobody looks."""


@dataclass
class Offline:
    """Parts that a test drives by hand."""

    parts: Parts
    runner: Runner
    gate: Gate = OPEN

    @property
    def account_id(self) -> str:
        """The only account."""
        (found,) = self.parts.accounts
        return found

    async def play(self) -> None:
        """Run whatever is due of listing, scanning and copying, until nothing is."""
        catalog, source = self.parts.catalog, self.parts.source
        stages = {
            Stage.DISCOVER: Discover(catalog, source),
            Stage.ADMIT: Admit(catalog, source),
            Stage.TRANSFER: Transfer(catalog, source, self.parts.store, gate=lambda: self.gate),
        }
        ran = True
        while ran:
            ran = False
            for name, stage in stages.items():
                async with catalog.read() as connection:
                    due = await deliveries.due(
                        connection, name, now=catalog.clock.now(), horizon_ms=0, limit=100
                    )
                for one in due:
                    ran = True
                    payload = {**one.payload, "number": one.number}
                    await self.runner.bind(stage)(Job(name, one.subject_id, payload))

    async def make_searchable(self) -> None:
        """Play the backend for everything that was copied."""
        catalog = self.parts.catalog
        async with catalog.read() as connection:
            rows = await connection.execute(
                select(imports.c.id, imports.c.round).where(imports.c.state == State.STORED)
            )
            stored = list(rows)
        for one in stored:
            await advance(catalog, one.id, Event.SUBMITTING, round_=one.round)
            await advance(
                catalog, one.id, Event.ACCEPTED, round_=one.round, facts={"backend_job": one.id}
            )
            facts = {"pages": 1, "chunks": 1, "shown": True}
            await advance(catalog, one.id, Event.SETTLED, round_=one.round, facts=facts)

    async def rows(self, table: Any, *where: Any) -> list[dict[str, Any]]:
        """Read rows of the catalog."""
        async with self.parts.catalog.read() as connection:
            found = await connection.execute(select(table).where(*where))
            return [dict(row) for row in found.mappings()]


@asynccontextmanager
async def offline(sim: GraphSim, folder: Path, **settings: Any) -> AsyncIterator[Offline]:
    """Open parts over a data folder; what they connect is copied when the test says so."""
    around = Surroundings.real()
    async with open_parts(settings_for(sim, folder, **settings), around) as parts:
        breakers = Breakers(around.clock, around.ids)
        yield Offline(parts, Runner(parts.catalog, breakers, owner="test"))

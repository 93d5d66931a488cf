"""Work over a Postgres that goes away in the middle, and beside processes of other versions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.catalog import heartbeats, reminders
from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.imports import set_detail
from drivefeed.domain.errors import NeedsAttention
from drivefeed.ports import Stage
from drivefeed.services.ownership import IndexOwnership
from drivefeed.stages.breaker import Breakers
from drivefeed.stages.discover import SubjectStage
from drivefeed.stages.outcome import Rest
from drivefeed.stages.runner import Runner
from drivefeed.system import SystemClock, SystemIds, no_checkpoint
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.reminders import Claim
    from drivefeed.stages.outcome import Outcome
    from support.postgres import PostgresServer


async def _open(url: str) -> Catalog:
    return await open_catalog(
        url, clock=SystemClock(), ids=SystemIds(), checkpoint=no_checkpoint, follows_database=True
    )


class _Delivery:
    """A delivery of a drive's reminder, as a queue hands it out."""

    attempt, attempts, job_id = 1, 1, "discover-x-1"

    def __init__(self, **payload: Any) -> None:
        self.payload: Mapping[str, Any] = payload

    async def progress(self, percent: int) -> None:
        del percent


class _Interrupted(SubjectStage):
    """A stage in whose middle Postgres crashes; it is back a moment later."""

    stage = Stage.DISCOVER
    _subject = "drive_id"

    def __init__(self, catalog: Catalog, server: PostgresServer) -> None:
        super().__init__(catalog)
        self._server = server
        self.runs = 0
        self.back: asyncio.Task[None] | None = None

    async def run(self, claim: Claim, delivery: Any) -> Outcome | None:
        del claim, delivery
        self.runs += 1
        await asyncio.to_thread(self._server.kill)
        self.back = asyncio.create_task(self._return())
        return Rest()

    async def _return(self) -> None:
        await asyncio.sleep(0.3)
        await asyncio.to_thread(self._server.start)


async def _due_drive(catalog: Catalog) -> Rig:
    rig = await Rig.make(catalog)
    async with catalog.write() as connection:
        await reminders.put(
            connection,
            subject_id=rig.drive_id,
            org_id=rig.org_id,
            stage=Stage.DISCOVER,
            due_at=catalog.clock.now(),
            payload={"schema": 1, "drive_id": rig.drive_id},
        )
    return rig


async def test_what_was_done_while_postgres_crashed_is_committed_when_it_is_back(
    own_postgres: PostgresServer,
) -> None:
    catalog = await _open(own_postgres.new_database())
    rig = await _due_drive(catalog)
    stage = _Interrupted(catalog, own_postgres)
    runner = Runner(catalog, Breakers(catalog.clock, catalog.ids), owner="me")
    number = (await rig.reminder(rig.drive_id))["number"]
    delivery = _Delivery(schema=1, drive_id=rig.drive_id, number=number)
    done = await runner.bind(stage)(delivery)
    assert done["outcome"] == "rest"
    assert stage.runs == 1
    row = await rig.reminder(rig.drive_id)
    assert (row["owner"], row["due_at"]) == (None, None)
    assert stage.back is not None
    await stage.back
    await catalog.aclose()


@pytest.fixture
async def catalog(postgres_url: str) -> AsyncIterator[Catalog]:
    opened = await _open(postgres_url)
    yield opened
    await opened.aclose()


async def test_a_job_of_another_version_waits_and_is_not_touched(
    catalog: Catalog, postgres_server: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    rig = await _due_drive(catalog)
    stage = _Interrupted(catalog, postgres_server)
    runner = Runner(catalog, Breakers(catalog.clock, catalog.ids), owner="me")
    before = await rig.reminder(rig.drive_id)
    delivery = _Delivery(schema=99, drive_id=rig.drive_id, number=before["number"])
    assert await runner.bind(stage)(delivery) == {"outcome": "another_version"}
    assert await rig.reminder(rig.drive_id) == before
    assert stage.runs == 0


async def test_text_with_nul_is_kept_without_it(catalog: Catalog) -> None:
    rig = await Rig.make(catalog)
    await rig.connect()
    await rig.scan()
    await rig.enumerate([ROOT, folder("docs"), file("a", "docs", name="a\0b.txt")])
    one = await rig.import_of("a")
    async with catalog.write() as connection:
        await set_detail(connection, one.import_id, "bytes \0 in a message")
    assert (await rig.document("a"))["name"] == "ab.txt"


async def test_the_embedded_index_has_one_owner_until_it_is_given_back(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drivefeed.services.ownership._LOOK_SECONDS", 0.01)
    monkeypatch.setattr("drivefeed.services.ownership._TERM_MS", 60)
    first, second = IndexOwnership(catalog, "first"), IndexOwnership(catalog, "second")
    await heartbeats.take_lease(catalog, "embedded index", "first", for_ms=60_000)
    with pytest.raises(NeedsAttention, match="Another worker has the embedded index"):
        await second.take()
    await first.give_back()
    await second.take()

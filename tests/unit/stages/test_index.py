"""What counts against a file when its process dies again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from drivefeed.catalog import reminders
from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.index_jobs import CatalogIndexJobs
from drivefeed.domain.reasons import Reason
from drivefeed.ports import IndexJobState, Submission
from drivefeed.stages.index import Index
from drivefeed.stages.outcome import Ask, Rest
from drivefeed.stages.runner import MOST_STARTS
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint
from unit.catalog.rig import Rig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

    from drivefeed.indexer.indexing import Indexing
    from drivefeed.ports import Delivery, IndexJob


class Reader:
    """Reads a file, or dies before it did, as the test says."""

    def __init__(self) -> None:
        self.reads = True
        self.runs = 0

    async def run(
        self,
        job_id: str,
        progress: object,
        *,
        once_read: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        del job_id, progress
        self.runs += 1
        if self.reads and once_read is not None:
            await once_read()


class NoDelivery:
    progress = None


class Bench:
    """An index job that is claimed by one process after another, each of which dies."""

    def __init__(self, rig: Rig, job: IndexJob) -> None:
        self.rig, self.job = rig, job
        self.reader = Reader()
        self.jobs = CatalogIndexJobs(rig.catalog)
        self.stage = Index(rig.catalog, cast("Indexing", self.reader), self.jobs)

    async def claimed(self) -> reminders.Claim:
        number = int((await self.rig.reminder(self.job.job_id))["number"])
        async with self.rig.catalog.write("test") as connection:
            claim = await reminders.claim(
                connection,
                subject_id=self.job.job_id,
                number=number,
                owner="somebody",
                now=self.rig.catalog.clock.now(),
                busy_ms=60_000,
            )
        assert claim is not None
        return claim

    async def life(self) -> Any:
        """Return what the stage said in a life that ends before that is written."""
        outcome = await self.stage.run(await self.claimed(), cast("Delivery", NoDelivery()))
        async with self.rig.catalog.write("test") as connection:
            now = self.rig.catalog.clock.now()
            await reminders.free_rows_of_dead_owners(connection, now=now, dead_before=now)
        return outcome


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    catalog = await open_catalog(
        new_catalog(tmp_path / "catalog.db"),
        clock=ManualClock(),
        ids=CountedIds(),
        checkpoint=no_checkpoint,
    )
    rig = await Rig.make(catalog)
    job = await CatalogIndexJobs(catalog).create(
        Submission(
            key="i:1",
            org_id=rig.org_id,
            document_id="d",
            import_id="i",
            round=1,
            seq=1,
            object_key="o/d/i/1",
            size=1,
            name="a.txt",
            media_type="text/plain",
            folders=(),
            metadata={},
        )
    )
    yield Bench(rig, job)
    await catalog.aclose()


async def test_a_file_that_is_read_each_time_is_never_refused(bench: Bench) -> None:
    for _ in range(4 * MOST_STARTS):
        assert isinstance(await bench.life(), Rest)
    assert bench.reader.runs == 4 * MOST_STARTS


async def test_a_file_at_whose_reading_the_process_dies_each_time_is_refused(bench: Bench) -> None:
    bench.reader.reads = False
    for _ in range(MOST_STARTS):
        assert isinstance(await bench.life(), Rest)
    claim = await bench.claimed()
    outcome = await bench.stage.run(claim, cast("Delivery", NoDelivery()))
    assert isinstance(outcome, Ask)
    assert bench.reader.runs == MOST_STARTS
    await bench.stage.commit(claim, outcome)
    job = await bench.jobs.get(bench.job.job_id)
    assert job is not None
    assert (job.state, job.reason) == (IndexJobState.REFUSED, Reason.EXTRACTION_CRASHED)


async def test_deaths_before_a_file_was_read_are_forgiven(bench: Bench) -> None:
    bench.reader.reads = False
    for _ in range(MOST_STARTS - 1):
        await bench.life()
    bench.reader.reads = True
    await bench.life()
    bench.reader.reads = False
    for _ in range(MOST_STARTS - 1):
        assert isinstance(await bench.life(), Rest)

"""The contract of :class:`drivefeed.ports.IndexJobs`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.index_jobs import CatalogIndexJobs
from drivefeed.catalog.passport import passports
from drivefeed.domain.lifecycle import Event
from drivefeed.domain.reasons import Reason
from drivefeed.ports import IndexJobState, Submission
from drivefeed.web.passport_shapes import passport_shape
from support.clock import CountedIds, ManualClock, no_checkpoint
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.ports import IndexJobs


@pytest.fixture
async def rig(catalog_url: str) -> AsyncIterator[Rig]:
    catalog = await open_catalog(
        catalog_url,
        clock=ManualClock(),
        ids=CountedIds(),
        checkpoint=no_checkpoint,
    )
    made = await Rig.make(catalog)
    await made.connect()
    await made.enumerate([ROOT, folder("docs"), file("a", "docs")])
    yield made
    await catalog.aclose()


@pytest.fixture
def jobs(rig: Rig) -> IndexJobs:
    return CatalogIndexJobs(rig.catalog)


@pytest.fixture
async def sent(rig: Rig) -> Submission:
    """A submission of an import that waits for its poll."""
    one = await rig.import_of("a")
    await rig.advance(one, Event.STORED, facts={"sha256": "s", "size": 10})
    await rig.advance(one, Event.SUBMITTING)
    await rig.advance(one, Event.ACCEPTED, facts={"backend_job": "job"})
    return Submission(
        key=f"{one.import_id}:1",
        org_id=one.org_id,
        document_id=one.document_id,
        import_id=one.import_id,
        round=1,
        seq=1,
        object_key="o/d/i/1",
        size=10,
        name="a.txt",
        media_type="text/plain",
        folders=("root", "docs"),
        metadata={"path": "a.txt"},
    )


async def test_a_job_comes_back_as_it_was_submitted(jobs: IndexJobs, sent: Submission) -> None:
    job = await jobs.create(sent)
    assert (job.submission, job.state, job.progress) == (sent, IndexJobState.QUEUED, 0)
    assert await jobs.get(job.job_id) == job
    assert await jobs.find(sent.key) == job


async def test_the_same_key_gives_the_same_job(jobs: IndexJobs, rig: Rig, sent: Submission) -> None:
    job = await jobs.create(sent)
    number = (await rig.reminder(job.job_id))["number"]
    assert await jobs.create(replace(sent, name="renamed.txt")) == job
    assert (await rig.reminder(job.job_id))["number"] == number
    assert (await jobs.create(replace(sent, key=f"{sent.import_id}:2"))).job_id != job.job_id


async def test_what_is_unknown_is_none(jobs: IndexJobs) -> None:
    assert await jobs.get("nothing") is None
    assert await jobs.find("nothing:1") is None
    await jobs.set_progress("nothing", 5)
    assert not await jobs.finish("nothing", IndexJobState.DONE)


async def test_a_new_job_is_due_at_once(jobs: IndexJobs, rig: Rig, sent: Submission) -> None:
    job = await jobs.create(sent)
    assert await rig.due(job.job_id) == ("index", 0)


async def test_the_end_makes_the_poll_due_now_and_the_job_rest(
    jobs: IndexJobs, rig: Rig, sent: Submission
) -> None:
    job = await jobs.create(sent)
    async with rig.catalog.write() as connection:
        from drivefeed.catalog.reminders import postpone

        await postpone(connection, sent.import_id, due_at=rig.catalog.clock.now() + 30_000)
    assert await jobs.finish(job.job_id, IndexJobState.DONE, pages=3, chunks=7, detail="text")
    ended = await jobs.get(job.job_id)
    assert ended is not None
    assert (ended.state, ended.progress, ended.pages, ended.chunks, ended.detail) == (
        IndexJobState.DONE,
        100,
        3,
        7,
        "text",
    )
    assert await rig.due(sent.import_id) == ("poll", 0)
    assert await rig.due(job.job_id) is None


@pytest.mark.parametrize(
    "state", [IndexJobState.DONE, IndexJobState.REFUSED, IndexJobState.CANCELLED]
)
async def test_a_job_ends_once(jobs: IndexJobs, sent: Submission, state: IndexJobState) -> None:
    job = await jobs.create(sent)
    assert await jobs.finish(job.job_id, state, reason=Reason.CORRUPT)
    ended = await jobs.get(job.job_id)
    for other in IndexJobState:
        assert not await jobs.finish(job.job_id, other, pages=9)
    await jobs.set_progress(job.job_id, 50)
    assert await jobs.get(job.job_id) == ended
    assert await jobs.create(sent) == ended, "the key is used up"


async def test_progress_is_kept_while_it_is_queued(jobs: IndexJobs, sent: Submission) -> None:
    job = await jobs.create(sent)
    await jobs.set_progress(job.job_id, 40)
    after = await jobs.get(job.job_id)
    assert after is not None
    assert after.progress == 40


async def test_progress_never_falls_where_the_work_begins_again(
    jobs: IndexJobs, sent: Submission
) -> None:
    job = await jobs.create(sent)
    for percent in (40, 0, 20):
        await jobs.set_progress(job.job_id, percent)
        after = await jobs.get(job.job_id)
        assert after is not None
        assert after.progress == 40


async def test_an_end_wakes_no_other_stage(jobs: IndexJobs, rig: Rig, sent: Submission) -> None:
    job = await jobs.create(sent)
    one = await rig.import_of("a")
    await rig.advance(one, Event.CANCELLED, reason=Reason.SUPERSEDED)
    before = await rig.reminder(one.import_id)
    assert await jobs.finish(job.job_id, IndexJobState.CANCELLED)
    assert await rig.reminder(one.import_id) == before


async def test_a_job_is_overtaken_by_a_higher_seq_of_its_document(
    jobs: IndexJobs, sent: Submission
) -> None:
    job = await jobs.create(sent)
    assert not await jobs.is_overtaken(job)
    await jobs.create(replace(sent, key="other:1", document_id="another document", seq=9))
    assert not await jobs.is_overtaken(job)
    higher = await jobs.create(replace(sent, key=f"{sent.import_id}:2", round=2, seq=2**53 - 1))
    assert await jobs.is_overtaken(job)
    assert not await jobs.is_overtaken(higher)


async def test_what_is_shown_is_remembered(jobs: IndexJobs, sent: Submission) -> None:
    job = await jobs.create(sent)
    await jobs.finish(job.job_id, IndexJobState.DONE, shown=False)
    for shown in (True, False):
        await jobs.set_shown(sent.key, shown=shown)
        after = await jobs.get(job.job_id)
        assert after is not None
        assert after.shown is shown
    await jobs.set_shown("nothing:1", shown=True)


async def test_it_is_remembered_at_which_start_a_file_was_read(
    jobs: IndexJobs, sent: Submission
) -> None:
    job = await jobs.create(sent)
    assert job.read_at_start == 0
    await jobs.note_read(job.job_id, 3)
    again = await jobs.get(job.job_id)
    assert again is not None
    assert again.read_at_start == 3


async def test_a_passport_says_how_far_a_version_is_while_it_is_indexed(
    rig: Rig, jobs: IndexJobs, sent: Submission
) -> None:
    async def percent() -> int | None:
        (story,) = await passports(rig.catalog, "a")
        shown: int | None = passport_shape(story).versions[0].indexed_percent
        return shown

    assert await percent() is None
    job = await jobs.create(sent)
    assert await percent() == 0
    await jobs.set_progress(job.job_id, 42)
    assert await percent() == 42
    await jobs.finish(job.job_id, IndexJobState.DONE, pages=1, chunks=1)
    assert await percent() is None

"""What every ingestion backend promises: our own, our own over HTTP, and the sample to copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from drivefeed.backends.contract import REFUSALS
from drivefeed.ports import BackendState
from support.backends import case_of, submission

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from support.backends import Case

KINDS = ["embedded", "embedded over HTTP", "sample"]


@pytest.fixture(params=KINDS)
async def case(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Case]:
    async with case_of(request.param, tmp_path) as opened:
        yield opened


async def test_it_answers(case: Case) -> None:
    await case.backend.check()


async def test_the_same_key_gives_the_same_job(case: Case) -> None:
    sent = submission()
    assert await case.backend.find(sent.key) is None
    job_id = await case.backend.submit(sent)
    assert await case.backend.submit(sent) == job_id
    assert await case.backend.find(sent.key) == job_id
    assert await case.backend.submit(submission(2)) != job_id
    await case.finish(job_id)
    assert await case.backend.submit(sent) == job_id, "the key is used up"
    assert await case.backend.find(sent.key) == job_id


async def test_what_is_unknown_is_said_to_be(case: Case) -> None:
    assert (await case.backend.status("nothing")).state is BackendState.UNKNOWN
    assert await case.backend.cancel("nothing"), "it will not finish"


async def test_a_job_works_until_it_is_done(case: Case) -> None:
    job_id = await case.backend.submit(submission(name="Übersicht 報告.txt"))
    assert (await case.backend.status(job_id)).state is BackendState.WORKING
    await case.finish(job_id)
    done = await case.backend.status(job_id)
    assert (done.state, done.progress, done.live) == (BackendState.DONE, 100, True)
    assert done.pages
    assert done.chunks
    assert await case.backend.status(job_id) == done


async def test_a_refusal_has_a_reason_of_the_list(case: Case) -> None:
    job_id = await case.backend.submit(submission())
    await case.refuse(job_id)
    refused = await case.backend.status(job_id)
    assert refused.state is BackendState.REFUSED
    assert refused.reason in REFUSALS


async def test_what_works_can_be_cancelled_again_and_again(case: Case) -> None:
    job_id = await case.backend.submit(submission())
    assert await case.backend.cancel(job_id)
    assert await case.backend.cancel(job_id)
    await case.finish(job_id)
    cancelled = await case.backend.status(job_id)
    assert (cancelled.state, cancelled.live) == (BackendState.CANCELLED, False)


async def test_what_is_done_cannot_be_cancelled(case: Case) -> None:
    job_id = await case.backend.submit(submission())
    await case.finish(job_id)
    assert not await case.backend.cancel(job_id)
    assert (await case.backend.status(job_id)).state is BackendState.DONE


async def test_a_lower_seq_is_not_shown_over_a_higher(case: Case) -> None:
    low = await case.backend.submit(submission(seq=3))
    high = await case.backend.submit(submission(seq=7, import_id="import-other"))
    await case.finish(high)
    await case.finish(low)
    assert (await case.backend.status(high)).live
    assert not (await case.backend.status(low)).live


async def test_it_hides_and_shows_as_told(case: Case) -> None:
    sent = submission()
    job_id = await case.backend.submit(sent)
    await case.finish(job_id)
    for live in (False, True):
        await case.backend.set_live(
            document_id=sent.document_id, import_id=sent.import_id, round_=1, live=live
        )
        assert (await case.backend.status(job_id)).live is live


async def test_a_late_removal_of_one_round_leaves_the_next(case: Case) -> None:
    first, second = submission(), submission(round=2, seq=2)
    jobs = [await case.backend.submit(one) for one in (first, second)]
    for job_id in jobs:
        await case.finish(job_id)
    where = {"document_id": first.document_id, "import_id": first.import_id}
    for _ in range(2):
        await case.backend.remove(**where, round_=1)
    assert (await case.backend.status(jobs[1])).live
    await case.backend.remove(**where, round_=2)
    assert not (await case.backend.status(jobs[1])).live


async def test_what_is_not_there_can_be_removed_hidden_and_placed(case: Case) -> None:
    await case.backend.remove(document_id="none", import_id="none", round_=1)
    await case.backend.set_live(document_id="none", import_id="none", round_=1, live=False)
    await case.backend.set_folders(document_id="none", name="新.txt", folders=("a", "b"))

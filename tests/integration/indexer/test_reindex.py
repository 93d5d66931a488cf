"""A second collection is built beside, catches up, and takes over; whatever happens meanwhile."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from sqlalchemy import update

from drivefeed.catalog.tables import imports
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.lifecycle import State
from integration.indexer.reindex_rig import (
    FILES,
    KilledError,
    ReindexRig,
    no_progress,
    rig_with_files,
)
from support.embeddings import Fault
from support.processes import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.indexer.extract import ExtractionPool

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(loop_scope="module")
async def rig(tmp_path: Path, shared_pool: ExtractionPool) -> AsyncIterator[ReindexRig]:
    """Three files, indexed with the first model and live."""
    async with rig_with_files(tmp_path, shared_pool, ReindexRig) as made:
        yield made


async def ids(rig: ReindexRig, *names: str) -> dict[str, str]:
    return {name: (await rig.rig.import_of(name)).import_id for name in names}


async def assert_taken_over(rig: ReindexRig, live: dict[str, bool]) -> None:
    """The second model's collection is in use and alone, and shows just these files."""
    assert (await rig.active()).model == "second"
    assert rig.shelf.building is None
    assert await rig.names() == [rig.shelf.current.name] == ["index-2"]
    named = await ids(rig, *live)
    assert await rig.rounds() == {named[name]: (shown, 1) for name, shown in live.items()}
    assert (await rig.reindexing.state()).state == "idle"


async def test_everything_moves_and_one_collection_is_left(rig: ReindexRig) -> None:
    before = await rig.found("orchard apples")
    state = await rig.reindexing.start()
    assert (state.state, state.done, state.total) == ("building", 0, 3)
    await rig.reindexing.work()
    await assert_taken_over(rig, dict.fromkeys(FILES, True))
    assert await rig.found("orchard apples") == before
    assert {body["model"] for _, body in rig.service.requests} == {"first", "second"}
    await rig.restart()
    await assert_taken_over(rig, dict.fromkeys(FILES, True))


@pytest.mark.parametrize(
    ("place", "texts"),
    [
        ("reindex.upsert.after", 3),
        ("reindex.built.commit.after", 2),
        ("reindex.swap.before", 0),
        ("reindex.swap.commit.after", 0),
    ],
)
async def test_killed_anywhere_it_goes_on_where_it_was(
    rig: ReindexRig, place: str, texts: int
) -> None:
    await rig.reindexing.start()
    rig.killed_at = place
    with pytest.raises(KilledError):
        await rig.reindexing.work()
    await rig.restart()
    rig.service.requests.clear()
    await rig.reindexing.work()
    await assert_taken_over(rig, dict.fromkeys(FILES, True))
    assert len(rig.service.texts) == texts


async def test_what_changes_meanwhile_changes_in_both(rig: ReindexRig) -> None:
    await rig.reindexing.start()
    rig.killed_at = "reindex.swap.before"
    with pytest.raises(KilledError):
        await rig.reindexing.work()
    await rig.restart()
    named = await ids(rig, "a", "b", "c")
    await rig.shelf.set_live(import_id=named["a"], round_=1, live=False)
    one = await rig.rig.import_of("b")
    await rig.shelf.set_folders(document_id=one.document_id, name="b moved", folders=("docs",))
    async with rig.catalog.write() as connection:
        gone = imports.c.id == named["c"]
        await connection.execute(update(imports).where(gone).values(state=State.WITHDRAWING))
    await rig.shelf.remove(import_id=named["c"], round_=1)
    await rig.list("a", "b", "c", "d")
    await rig.index("d", "damsons of the orchard")

    await rig.reindexing.work()
    # The new one waits for its poll still, and is shown as before.
    await assert_taken_over(rig, {"a": False, "b": True, "d": True})
    assert await rig.found("bread") == {"b moved", "d.txt"}
    await rig.settle("d")
    assert (await rig.rig.import_of("d")).chunks == 1


async def test_an_index_job_that_the_swap_overtakes_begins_again(rig: ReindexRig) -> None:
    await rig.reindexing.start()
    await rig.list("a", "b", "c", "d")
    rig.service.faults = [Fault(slow=0.6)]
    rig.service.requests.clear()
    under_way = asyncio.create_task(rig.index("d", "damsons of the orchard"))
    await asyncio.to_thread(lambda: until(lambda: rig.service.requests, seconds=30, what="work"))
    assert [body["model"] for _, body in rig.service.requests] == ["first"]
    await rig.reindexing.work()
    await under_way
    await assert_taken_over(rig, {"a": True, "b": True, "c": True, "d": True})


async def test_points_of_an_interrupted_round_are_built_again(rig: ReindexRig) -> None:
    await rig.reindexing.start()
    rig.killed_at = "reindex.swap.before"
    with pytest.raises(KilledError):
        await rig.reindexing.work()
    await rig.restart()
    named = await ids(rig, "a")
    assert rig.shelf.building is not None
    await rig.shelf.building.index.remove(import_id=named["a"], round_=1)
    await rig.reindexing.work()
    await assert_taken_over(rig, dict.fromkeys(FILES, True))


async def test_a_file_that_cannot_be_read_again_stops_the_swap(rig: ReindexRig) -> None:
    one = await rig.rig.import_of("b")
    job = await rig.jobs.find(f"{one.import_id}:1")
    assert job is not None
    assert await rig.store.delete(job.submission.object_key)
    await rig.reindexing.start()
    await rig.reindexing.work()
    state = await rig.reindexing.state()
    assert (state.state, state.done, state.failed) == ("held", 2, 1)
    assert state.unreadable == ("b.txt: The bytes of 'b.txt' are not in the object store.",)
    assert (await rig.active()).model == "first"
    assert "b.txt" in await rig.found("bread")

    await rig.reindexing.start(leave_out=True)
    await rig.reindexing.work()
    await assert_taken_over(rig, {"a": True, "c": True})


async def test_a_provider_that_refuses_is_told_at_once(rig: ReindexRig) -> None:
    with pytest.raises(NeedsAttention, match="ollama pull absent"):
        await rig.reindexing.start("absent")
    assert (await rig.reindexing.state()).state == "idle"
    assert await rig.names() == ["index"]


async def test_a_second_wish_is_refused_and_nothing_to_do_is_said(rig: ReindexRig) -> None:
    with pytest.raises(NeedsAttention, match=r"made with 'first' \(ollama, 64 numbers\) already"):
        await rig.reindexing.start("first")
    await rig.reindexing.start("second")
    with pytest.raises(NeedsAttention, match=r"A reindex to 'second' .* is under way"):
        await rig.reindexing.start("third")


async def test_the_same_model_builds_again_where_that_is_asked_for(rig: ReindexRig) -> None:
    before = await rig.found("orchard apples")
    await rig.reindexing.start("first", anew=True)
    await rig.reindexing.work()
    assert await rig.names() == ["index-2"]
    assert (await rig.active()).model == "first"
    assert await rig.found("orchard apples") == before


async def test_it_can_be_stopped(rig: ReindexRig) -> None:
    await rig.reindexing.start()
    rig.killed_at = "reindex.swap.before"
    with pytest.raises(KilledError):
        await rig.reindexing.work()
    assert await rig.names() == ["index", "index-2"]
    assert (await rig.reindexing.cancel()).state == "idle"
    await rig.reindexing.work()
    assert await rig.names() == ["index"]
    named = await ids(rig, *FILES)
    assert await rig.rounds() == dict.fromkeys(named.values(), (True, 1))
    # The next one gets a name of its own.
    await rig.reindexing.start()
    await rig.reindexing.work()
    assert await rig.names() == ["index-3"]


async def test_a_settings_fault_waits_and_rejects_no_file(rig: ReindexRig) -> None:
    await rig.list("a", "b", "c", "d")
    rig.service.key = "changed"
    with pytest.raises(Exception, match="Check 'api_key'") as caught:
        await rig.index("d", "damsons")
    assert type(caught.value).__name__ == "PartDown"
    one = await rig.rig.import_of("d")
    job = await rig.jobs.find(f"{one.import_id}:1")
    assert job is not None
    assert job.state == "queued"
    rig.service.key = rig.shelf.current.embedder._protocol._key  # type: ignore[attr-defined]
    await rig.indexing.run(job.job_id, no_progress)
    assert "d.txt" in await rig.found("damsons")

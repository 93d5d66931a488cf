"""One of two organizations gets a collection of its own, and gives it up again."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from sqlalchemy import update

from drivefeed.catalog.collections import collections_of
from drivefeed.catalog.tables import imports
from drivefeed.domain.errors import NeedsAttention, PartDown
from drivefeed.domain.lifecycle import State
from drivefeed.ports import SearchFilter
from integration.indexer.reindex_rig import (
    INDEX,
    KilledError,
    ReindexRig,
    no_progress,
    opened_rig,
)
from support.embeddings import Fault
from support.processes import until
from unit.catalog.rig import Rig

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.indexer.extract import ExtractionPool

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.soak]

OURS = {"a": "apples in the orchard", "b": "bread from the mill"}
THEIRS = {"x": "apples of the market", "y": "yarn from the mill"}


class Town(ReindexRig):
    """Two organizations in one installation; what a test plays is for ours unless it says so."""

    async def settle_in(self, theirs: Rig) -> None:
        self.ours, self.theirs = self.rig, theirs
        for rig, files in ((self.theirs, THEIRS), (self.ours, OURS)):
            self.rig = rig
            await self.list(*files)
            for name, words in files.items():
                await self.index(name, words)
                await self.settle(name)
        self.service.requests.clear()

    @property
    def org_id(self) -> str:
        return self.ours.org_id

    @property
    def own(self) -> str:
        return f"index-org-{self.org_id}-1"

    async def theirs_found(self, words: str) -> set[str]:
        self.rig = self.theirs
        try:
            return await self.found(words)
        finally:
            self.rig = self.ours

    async def ids_of(self, rig: Rig, *names: str) -> set[str]:
        return {(await rig.import_of(name)).import_id for name in names}

    async def move(self) -> None:
        await self.reindexing.start(org_id=self.org_id)
        await self.reindexing.work()

    async def killed(self, place: str) -> None:
        self.killed_at = place
        with pytest.raises(KilledError):
            await self.reindexing.work()
        await self.restart()

    async def in_house(self) -> set[str]:
        return {one async for one, _, _, _ in self.library.house.rounds()}


@pytest_asyncio.fixture(loop_scope="module")
async def town(tmp_path: Path, shared_pool: ExtractionPool) -> AsyncIterator[Town]:
    async with opened_rig(Town, tmp_path, shared_pool) as made:
        theirs = await Rig.make(made.catalog, name="neighbours")
        await theirs.connect()
        await made.settle_in(theirs)
        made.chosen = "own"
        yield made


async def assert_all_are_found(town: Town) -> None:
    """Each organization finds its own and nothing else, wherever its points are."""
    assert await town.found("apples bread mill") == {"a.txt", "b.txt"}
    assert await town.theirs_found("apples yarn mill") == {"x.txt", "y.txt"}


async def assert_moved_out(town: Town) -> None:
    """Ours are in a collection of their own, and nowhere else."""
    known = await collections_of(town.catalog, INDEX, town.org_id)
    assert known.active is not None
    assert (known.active.name, known.active.model) == (town.own, "own")
    assert (known.building, known.old, known.leaving) == (None, (), ())
    assert await town.names() == ["index", town.own]
    assert await town.in_house() == await town.ids_of(town.theirs, *THEIRS)
    everywhere = await town.ids_of(town.ours, *OURS) | await town.in_house()
    assert await town.rounds() == dict.fromkeys(everywhere, (True, 1))
    await assert_all_are_found(town)


async def assert_moved_back(town: Town) -> None:
    assert await town.names() == ["index"]
    everywhere = await town.ids_of(town.theirs, *THEIRS) | await town.ids_of(town.ours, *OURS)
    assert await town.in_house() == everywhere
    assert await town.rounds() == dict.fromkeys(everywhere, (True, 1))
    assert (await town.reindexing.state(org_id=town.org_id)).collection == "index"
    await assert_all_are_found(town)


async def test_an_organization_moves_out_and_the_others_stay(town: Town) -> None:
    state = await town.reindexing.start(org_id=town.org_id)
    assert (state.state, state.done, state.total) == ("building", 0, 2)
    assert "'first'" in state.active
    assert "'own'" in state.building
    await town.reindexing.work()
    assert {body["model"] for _, body in town.service.requests} == {"own"}
    assert not any("yarn" in text for text in town.service.texts)
    town.service.requests.clear()
    await assert_moved_out(town)
    # Each query is embedded with the model of the collection that it is for.
    assert [body["model"] for _, body in town.service.requests] == ["own", "first"]
    await town.restart()
    await assert_moved_out(town)


@pytest.mark.parametrize(
    "place",
    [
        "reindex.upsert.after",
        "reindex.built.commit.after",
        "reindex.swap.before",
        "reindex.swap.commit.after",
        "reindex.clear.before",
        "reindex.clear.after",
    ],
)
async def test_killed_anywhere_it_moves_out_without_a_gap(town: Town, place: str) -> None:
    await town.reindexing.start(org_id=town.org_id)
    await town.killed(place)
    await assert_all_are_found(town)
    # What is on the way is in no list twice.
    assert len(await town.rounds()) == len(OURS) + len(THEIRS)
    assert {points for _, points in (await town.rounds()).values()} == {1}
    await town.reindexing.work()
    await assert_moved_out(town)


@pytest.mark.parametrize(
    "place",
    [
        "reindex.upsert.after",
        "reindex.swap.before",
        "reindex.swap.commit.after",
        "reindex.drop.before",
    ],
)
async def test_killed_anywhere_it_moves_back_without_a_gap(town: Town, place: str) -> None:
    await town.move()
    town.chosen = None
    await town.reindexing.start(org_id=town.org_id)
    await town.killed(place)
    await assert_all_are_found(town)
    assert len(await town.rounds()) == len(OURS) + len(THEIRS)
    await town.reindexing.work()
    await assert_moved_back(town)
    # The next one of its own gets another name.
    town.chosen = "own"
    await town.move()
    assert await town.names() == ["index", f"index-org-{town.org_id}-2"]


async def test_what_changes_on_the_way_changes_in_both(town: Town) -> None:
    await town.list("a", "b", "c")
    await town.index("c", "cider of the mill")
    await town.settle("c")
    await town.reindexing.start(org_id=town.org_id)
    await town.killed("reindex.swap.before")
    (a,), (b,), (c,) = [await town.ids_of(town.ours, one) for one in "abc"]
    await town.library.set_live(import_id=a, round_=1, live=False)
    one = await town.ours.import_of("b")
    await town.library.set_folders(document_id=one.document_id, name="b moved", folders=("docs",))
    async with town.catalog.write() as connection:
        gone = imports.c.id == c
        await connection.execute(update(imports).where(gone).values(state=State.WITHDRAWING))
    await town.library.remove(import_id=c, round_=1)
    await town.list("a", "b", "c", "d")
    await town.index("d", "damsons of the mill")
    await town.reindexing.work()
    assert await town.names() == ["index", town.own]
    assert await town.found("apples bread cider damsons") == {"b moved", "d.txt"}
    assert await town.in_house() == await town.ids_of(town.theirs, *THEIRS)
    # After the swap, what is told by an import reaches the collection of whose it is.
    assert await town.library.remove(import_id=b, round_=1) == 1
    assert await town.found("apples bread cider damsons") == {"d.txt"}


async def test_an_index_job_that_the_move_overtakes_begins_again(town: Town) -> None:
    await town.reindexing.start(org_id=town.org_id)
    await town.list("a", "b", "d")
    town.service.faults = [Fault(slow=0.6)]
    town.service.requests.clear()
    under_way = asyncio.create_task(town.index("d", "damsons of the orchard"))
    await asyncio.to_thread(lambda: until(lambda: town.service.requests, seconds=30, what="work"))
    assert [body["model"] for _, body in town.service.requests] == ["first"]
    await town.reindexing.work()
    await under_way
    assert "d.txt" in await town.found("damsons")
    assert await town.in_house() == await town.ids_of(town.theirs, *THEIRS)


async def test_the_installation_is_reindexed_without_those_who_moved_out(town: Town) -> None:
    await town.move()
    town.service.requests.clear()
    await town.reindexing.start("second")
    await town.reindexing.work()
    assert await town.names() == ["index-2", town.own]
    assert sorted(town.service.texts) == sorted(["word", *THEIRS.values()])
    await assert_all_are_found(town)
    await town.restart()
    await assert_all_are_found(town)


async def test_one_moves_out_while_the_installation_is_reindexed(town: Town) -> None:
    await town.reindexing.start("second")
    await town.killed("reindex.swap.before")
    assert town.library.house.building is not None
    await town.reindexing.start(org_id=town.org_id)
    await town.reindexing.work(org_id=town.org_id)
    # Both of the installation's are cleared: what is in use, and what is being built.
    theirs = await town.ids_of(town.theirs, *THEIRS)
    assert {one async for one, *_ in town.library.house.building.index.rounds()} == theirs
    assert await town.in_house() == theirs
    await town.reindexing.work()
    assert await town.names() == ["index-2", town.own]
    assert await town.in_house() == theirs
    await assert_all_are_found(town)


async def test_who_returns_and_the_installation_wait_for_each_other(town: Town) -> None:
    await town.move()
    town.chosen = None
    await town.reindexing.start(org_id=town.org_id)
    with pytest.raises(NeedsAttention, match="being moved into the installation's collection"):
        await town.reindexing.start("second")
    await town.reindexing.cancel(org_id=town.org_id)
    await town.reindexing.start("second")
    with pytest.raises(NeedsAttention, match="is being reindexed"):
        await town.reindexing.start(org_id=town.org_id)


async def test_a_return_that_is_stopped_leaves_nothing_behind(town: Town) -> None:
    await town.move()
    town.chosen = None
    await town.reindexing.start(org_id=town.org_id)
    await town.killed("reindex.swap.before")
    assert len(await town.in_house()) == len(OURS) + len(THEIRS)
    assert (await town.reindexing.cancel(org_id=town.org_id)).state == "idle"
    assert len(await town.rounds()) == len(OURS) + len(THEIRS)
    await town.reindexing.work()
    await assert_moved_out(town)


async def test_a_provider_that_refuses_keeps_its_own_organization_only(town: Town) -> None:
    await town.move()
    await town.list("a", "b", "d")
    town.service.faults = [Fault(status=401)]
    with pytest.raises(PartDown, match="Check 'api_key'") as caught:
        await town.index("d", "damsons")
    # The breaker of the index stays closed: this one says for itself how long it waits.
    assert caught.value.wait_ms
    one = await town.ours.import_of("d")
    job = await town.jobs.find(f"{one.import_id}:1")
    assert job is not None
    assert job.state == "queued"
    asked = len(town.service.requests)
    with pytest.raises(PartDown, match="Check 'api_key'"):
        await town.indexing.run(job.job_id, no_progress)
    assert len(town.service.requests) == asked

    town.rig = town.theirs
    await town.list("x", "y", "z")
    await town.index("z", "zinc of the market")
    assert "z.txt" in await town.found("zinc")
    town.rig = town.ours

    town.library.of(town.org_id).pause.end()
    await town.indexing.run(job.job_id, no_progress)
    assert "d.txt" in await town.found("damsons")


async def test_points_in_the_wrong_collection_are_seen_and_removed(town: Town) -> None:
    await town.move()
    (a,) = await town.ids_of(town.ours, "a")
    own = town.library.of(town.org_id).current.index
    (point,) = [
        hit.point
        for hit in await town.library.search(
            vector=[1.0] + [0.0] * (town.service.dimension - 1),
            text="apples",
            where=SearchFilter(town.org_id),
            limit=10,
        )
        if hit.point.import_id == a
    ]
    stray = replace(point, vector=[1.0] + [0.0] * (town.service.dimension - 1))
    await town.library.house.current.index.upsert([stray])
    rows = [row async for row in town.library.rounds() if row[0] == a]
    assert len(rows) == 2
    assert await town.library.tidy() == 1
    assert [row async for row in town.library.rounds() if row[0] == a] == rows[:1]
    assert await own.count() == len(OURS)

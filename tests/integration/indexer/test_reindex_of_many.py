"""A reindex of an index that several processes have open: one has it alone while it works.

The index is an embedded one, because no Qdrant server runs here; whose turn it is, is decided in
the catalog alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from drivefeed.catalog import index_turns
from drivefeed.catalog.collections import collections_of
from drivefeed.domain.errors import NeedsAttention, Transient
from drivefeed.services.index_turns import IndexTurns
from integration.indexer.reindex_rig import INDEX, ReindexRig, rig_with_files
from support.clock import ManualClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.indexer.extract import ExtractionPool

pytestmark = pytest.mark.asyncio(loop_scope="module")

LEASE_MS = 15_000
OPEN = "Another process has the vector index open"


class Many(ReindexRig):
    """An installation one of whose processes the test plays, and the other one's leases."""

    async def join(self) -> None:
        self.turns = IndexTurns(self.catalog, self.library, index=INDEX, owner="one")
        await self.turns.take()
        await self.restart()

    async def other_opens(self) -> int | None:
        return await index_turns.enter(self.catalog, INDEX, "other", for_ms=LEASE_MS)

    async def other_ends(self) -> None:
        await index_turns.leave(self.catalog, INDEX, "other")

    def wait(self) -> None:
        assert isinstance(self.catalog.clock, ManualClock)
        self.catalog.clock.turn(ms=LEASE_MS + 1)


@pytest_asyncio.fixture(loop_scope="module")
async def rig(tmp_path: Path, shared_pool: ExtractionPool) -> AsyncIterator[Many]:
    async with rig_with_files(tmp_path, shared_pool, Many) as made:
        await made.join()
        yield made


async def collections(rig: Many) -> tuple[str, str | None]:
    known = await collections_of(rig.catalog, INDEX)
    assert known.active is not None
    return known.active.name, known.building.name if known.building else None


async def test_nothing_begins_while_another_process_has_it_open(rig: Many) -> None:
    assert await rig.other_opens() is not None
    for begins in (rig.reindexing.start(), rig.reindexing.cancel()):
        with pytest.raises(NeedsAttention, match=OPEN):
            await begins
    assert await collections(rig) == ("index", None)
    await rig.reindexing.work()
    await rig.other_ends()
    await rig.reindexing.start()
    assert await rig.other_opens() is not None, "between turns it may be opened"
    with pytest.raises(NeedsAttention, match=OPEN):
        await rig.reindexing.work()
    assert await collections(rig) == ("index", "index-2")
    assert not rig.service.texts[1:], "not even a part of it was built"
    rig.wait()
    await rig.reindexing.work()
    assert await collections(rig) == ("index-2", None)
    assert await rig.names() == ["index-2"]


async def test_nobody_opens_it_while_it_is_built(rig: Many) -> None:
    opened: list[int | None] = []
    placed = rig.indexing.build

    async def build(*args: object) -> int:
        opened.append(await rig.other_opens())
        return await placed(*args)  # type: ignore[arg-type] - handed on as they came

    rig.indexing.build = build  # type: ignore[method-assign] - looks on, and does the same
    await rig.reindexing.start()
    await rig.reindexing.work()
    assert opened == [None] * 3
    assert await rig.other_opens() is not None


async def test_whoever_lost_its_turn_swaps_nothing_and_removes_nothing(rig: Many) -> None:
    await rig.reindexing.start()
    places: list[str] = []

    def stands_still(name: str) -> None:
        places.append(name)
        if name == "reindex.swap.before":
            rig.wait()

    rig.catalog.checkpoint = stands_still
    with pytest.raises(Transient, match="stood still"):
        await rig.reindexing.work()
    assert await collections(rig) == ("index", "index-2")
    assert "reindex.drop.before" not in places[places.index("reindex.swap.before") :]
    rig.catalog.checkpoint = lambda _: None
    # The next turn is anybody's: here it is the same process again.
    await rig.reindexing.work()
    assert await collections(rig) == ("index-2", None)
    assert await rig.names() == ["index-2"], "nothing stays behind"


async def test_who_opened_it_before_a_swap_and_joined_after_it_does_not_go_on(rig: Many) -> None:
    late = rig.library
    await rig.reindexing.start()
    joining = IndexTurns(rig.catalog, late, index=INDEX, owner="late")
    rig.library.house.building = None
    with pytest.raises(NeedsAttention, match="rebuilt while this process started"):
        await joining.take()
    await rig.restart()
    with pytest.raises(NeedsAttention, match=OPEN):
        async with IndexTurns(rig.catalog, None, index=INDEX, owner="command").alone():
            pytest.fail("somebody has it open")

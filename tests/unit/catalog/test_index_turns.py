"""Who rebuilds the index of a server has it alone: nobody has it open, and nobody opens it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog import index_turns
from drivefeed.catalog.engine import open_catalog
from drivefeed.domain.errors import Transient
from support.clock import CountedIds, no_checkpoint
from support.processes import environment

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog
    from support.clock import ManualClock

INDEX = "qdrant/shared"
TERM_MS = 1_000
REPOSITORY = Path(__file__).resolve().parents[3]
TURNS = 8


@pytest.fixture
async def other(catalog: Catalog, catalog_url: str, clock: ManualClock) -> AsyncIterator[Catalog]:
    """The same catalog, opened by another process."""
    del catalog
    opened = await open_catalog(
        catalog_url, clock=clock, ids=CountedIds(), checkpoint=no_checkpoint
    )
    yield opened
    await opened.aclose()


async def enter(catalog: Catalog, owner: str) -> int | None:
    return await index_turns.enter(catalog, INDEX, owner, for_ms=TERM_MS)


async def stay(catalog: Catalog, owner: str, term: int) -> bool:
    return await index_turns.stay(catalog, INDEX, owner, term=term, for_ms=TERM_MS)


async def take(catalog: Catalog, owner: str) -> tuple[int, int | None]:
    return await index_turns.take_turn(catalog, INDEX, owner, for_ms=TERM_MS)


async def require(catalog: Catalog, owner: str) -> None:
    async with catalog.read() as connection:
        await index_turns.require_turn(connection, INDEX, owner, now=catalog.clock.now())


async def test_a_turn_waits_for_those_who_have_it_open(
    catalog: Catalog, other: Catalog, clock: ManualClock
) -> None:
    assert await enter(catalog, "a") == 0
    assert await enter(other, "b") == 0
    assert await take(catalog, "a") == (1, None)
    await index_turns.leave(other, INDEX, "b")
    assert await take(catalog, "a") == (0, 1)
    # Nobody opens it meanwhile; afterwards anybody does, and knows of that rebuild.
    assert await enter(other, "b") is None
    assert await take(other, "b") == (1, None)
    await index_turns.end_turn(catalog, INDEX, "a")
    assert await enter(other, "b") == 1
    # Whoever died has it open until its lease ends, and no longer.
    assert await take(catalog, "a") == (1, None)
    clock.turn(ms=TERM_MS + 1)
    assert await take(catalog, "a") == (0, 2)
    # Of another index nothing was said.
    assert await index_turns.enter(other, "qdrant/another", "b", for_ms=TERM_MS) == 0


async def test_whoever_stood_still_is_told_that_the_index_was_rebuilt(
    catalog: Catalog, other: Catalog, clock: ManualClock
) -> None:
    term = await enter(other, "b")
    assert term == 0
    clock.turn(ms=TERM_MS + 1)
    assert await stay(other, "b", term), "late, and nobody rebuilt it"
    clock.turn(ms=TERM_MS + 1)
    assert await take(catalog, "a") == (0, 1)
    await index_turns.end_turn(catalog, INDEX, "a")
    assert not await stay(other, "b", term)


async def test_a_turn_lasts_while_it_is_renewed_and_is_required_before_what_cannot_be_undone(
    catalog: Catalog, other: Catalog, clock: ManualClock
) -> None:
    assert await enter(catalog, "a") == 0
    assert await take(catalog, "a") == (0, 1)
    for _ in range(3):
        clock.turn(ms=TERM_MS)
        await require(catalog, "a")
        assert await stay(catalog, "a", 1)
    with pytest.raises(Transient):
        await require(other, "b")
    clock.turn(ms=TERM_MS + 1)
    with pytest.raises(Transient):
        await require(catalog, "a")
    assert await take(other, "b") == (0, 2)
    await index_turns.end_turn(catalog, INDEX, "a")
    await require(other, "b")


async def test_of_two_that_want_it_at_once_one_has_it(
    catalog: Catalog, other: Catalog, clock: ManualClock
) -> None:
    for term in (1, 2, 3):
        both = await asyncio.gather(take(catalog, f"a{term}"), take(other, f"b{term}"))
        assert sorted(both, key=str) == [(0, term), (1, None)]
        clock.turn(ms=TERM_MS + 1)


async def test_of_one_that_opens_it_and_one_that_wants_it_alone_one_succeeds(
    catalog: Catalog, other: Catalog, clock: ManualClock
) -> None:
    for number in range(4):
        entered, (_, term) = await asyncio.gather(
            enter(catalog, f"a{number}"), take(other, f"b{number}")
        )
        assert (entered is None) is (term is not None)
        clock.turn(ms=TERM_MS + 1)


def test_two_processes_never_have_it_at_the_same_time(catalog_url: str, tmp_path: Path) -> None:
    workers = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "support.turn_worker",
                catalog_url,
                str(tmp_path),
                name,
                str(TURNS),
            ],
            env=environment(PYTHONPATH=f"{REPOSITORY / 'src'}:{REPOSITORY / 'tests'}"),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        for name in ("first", "second")
    ]
    for worker in workers:
        _, complaints = worker.communicate(timeout=100)
        assert worker.returncode == 0, complaints.decode()
    terms = sorted(int(one.name.removeprefix("term-")) for one in tmp_path.glob("term-*"))
    assert terms == list(range(1, 2 * TURNS + 1))

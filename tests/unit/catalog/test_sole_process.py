"""A catalog belongs to one process, wherever the database is; its folder tells it from others."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog import heartbeats, sole_process
from drivefeed.domain.errors import PartDown
from drivefeed.services.sole_process import (
    refuse_beside_others,
    refuse_in_another_folder,
    share_catalog,
    take_catalog,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog
    from support.clock import ManualClock


@asynccontextmanager
async def passing_time(catalog: Catalog, clock: ManualClock, *owners: str) -> AsyncIterator[None]:
    """Let two seconds pass every moment; owners say each time that they are alive."""

    async def pass_on() -> None:
        while True:
            clock.turn(seconds=2)
            for owner in owners:
                await heartbeats.beat(catalog, owner, "up")
            await asyncio.sleep(0.05)

    passing = asyncio.create_task(pass_on())
    try:
        yield
    finally:
        passing.cancel()


async def test_who_was_killed_in_this_folder_is_waited_for_by_nobody(catalog: Catalog) -> None:
    await take_catalog(catalog, "killed", "up", folder="mine")
    assert await heartbeats.take_lease(catalog, "recovery", "killed", for_ms=60_000) == 1
    # The clock stands still: a wait for the heartbeat's end would have none.
    await take_catalog(catalog, "next", "up", folder="mine")
    assert list((await sole_process.standing(catalog)).alive) == ["next"]
    assert await heartbeats.take_lease(catalog, "recovery", "next", for_ms=60_000) == 2


async def test_a_living_process_with_another_folder_keeps_us_off(
    catalog: Catalog, clock: ManualClock
) -> None:
    await take_catalog(catalog, "first", "up", folder="theirs")
    async with passing_time(catalog, clock, "first"):
        with pytest.raises(PartDown, match=r"'drivefeed up' \(first\) works on this database"):
            await take_catalog(catalog, "second", "up", folder="mine")
    assert (await sole_process.standing(catalog)).folder == "theirs"


async def test_a_dead_process_with_another_folder_is_followed(
    catalog: Catalog, clock: ManualClock
) -> None:
    await take_catalog(catalog, "killed", "up", folder="theirs")
    async with passing_time(catalog, clock):
        await take_catalog(catalog, "next", "up", folder="mine")
    standing = await sole_process.standing(catalog)
    assert standing.folder == "mine"


async def test_of_two_that_begin_at_once_one_is_refused(catalog: Catalog) -> None:
    taken = await asyncio.gather(
        *(
            sole_process.take(catalog, name, "up", folder=name, dead=frozenset())
            for name in ("one", "two")
        )
    )
    assert [one.rival is None for one in taken].count(True) == 1


async def test_many_processes_do_not_begin_beside_one_that_is_alone(
    catalog: Catalog, clock: ManualClock
) -> None:
    await take_catalog(catalog, "first", "up", folder="theirs")
    async with passing_time(catalog, clock, "first"):
        with pytest.raises(PartDown, match="Many processes"):
            await share_catalog(catalog)
    async with passing_time(catalog, clock):
        await share_catalog(catalog)
    await heartbeats.beat(catalog, "a worker", "worker")
    async with passing_time(catalog, clock, "a worker"):
        with pytest.raises(PartDown, match="a worker"):
            await take_catalog(catalog, "first", "up", folder="theirs")


async def test_a_restore_waits_for_nobody_of_its_folder_and_is_refused_beside_others(
    catalog: Catalog, clock: ManualClock
) -> None:
    await take_catalog(catalog, "killed", "up", folder="mine")
    await refuse_beside_others(catalog, folder="mine")
    async with passing_time(catalog, clock, "killed"):
        with pytest.raises(PartDown, match="killed"):
            await refuse_beside_others(catalog, folder="another")
    async with passing_time(catalog, clock):
        await refuse_beside_others(catalog, folder="another")


async def test_commands_about_parts_belong_to_the_folder_of_who_works(
    catalog: Catalog, clock: ManualClock
) -> None:
    await refuse_in_another_folder(catalog, folder="another")
    await take_catalog(catalog, "first", "up", folder="mine")
    await heartbeats.beat(catalog, "a command's", "web")
    async with passing_time(catalog, clock, "first"):
        await refuse_in_another_folder(catalog, folder="mine")
        await refuse_in_another_folder(catalog, folder=None)
        with pytest.raises(PartDown, match="Name that folder with --data"):
            await refuse_in_another_folder(catalog, folder="another")
    async with passing_time(catalog, clock, "a command's"):
        await refuse_in_another_folder(catalog, folder="another")

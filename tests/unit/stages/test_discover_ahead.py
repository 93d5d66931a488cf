"""The next page of a listing is fetched while the one before it is written."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from drivefeed.domain.errors import CursorExpired
from drivefeed.domain.remote import DeltaPage, DriveRef
from drivefeed.stages.discover_ahead import reading_ahead

REF = DriveRef("account", "drive")


@dataclass
class Scripted:
    """Pages ``1`` to ``3``; what is asked for is remembered."""

    failing: dict[str, Exception] = field(default_factory=dict)
    asked: list[str | None] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    slow: bool = False

    async def delta(self, drive: DriveRef, link: str | None) -> DeltaPage:
        assert drive is REF
        self.asked.append(link)
        try:
            if self.slow and link is not None:
                await asyncio.sleep(3600)
            if link in self.failing:
                raise self.failing.pop(link)
        finally:
            self.ended.append(str(link))
        number = int(link or 0) + 1
        is_last = number == 3
        return DeltaPage((), None if is_last else str(number), "end" if is_last else None)


async def turns() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_the_page_after_is_asked_for_before_anybody_wants_it_and_only_once() -> None:
    source = Scripted()
    async with reading_ahead(source) as ahead:
        first = await ahead.delta(REF, None)
        await turns()
        assert source.asked == [None, "1"]
        second = await ahead.delta(REF, first.next_link)
        await turns()
        third = await ahead.delta(REF, second.next_link)
        await turns()
    assert third.delta_link == "end"
    assert source.asked == [None, "1", "2"]


async def test_what_goes_wrong_ahead_is_told_when_the_page_is_wanted_and_then_asked_anew() -> None:
    source = Scripted(failing={"1": CursorExpired("The link is too old.")})
    async with reading_ahead(source) as ahead:
        await ahead.delta(REF, None)
        await turns()
        with pytest.raises(CursorExpired):
            await ahead.delta(REF, "1")
        assert (await ahead.delta(REF, "1")).next_link == "2"


async def test_another_link_than_the_one_that_was_begun_is_followed() -> None:
    source = Scripted(slow=True)
    async with reading_ahead(source) as ahead:
        await ahead.delta(REF, None)
        await turns()
        assert (await ahead.delta(REF, None)).next_link == "1"
        assert source.ended == ["None", "1", "None"]


async def test_nothing_goes_on_after_the_end_of_the_block() -> None:
    source = Scripted(slow=True)
    before = asyncio.all_tasks()
    async with reading_ahead(source) as ahead:
        await ahead.delta(REF, None)
        await turns()
    assert source.ended == ["None", "1"]
    assert asyncio.all_tasks() == before


async def test_whoever_is_cancelled_while_waiting_leaves_nothing_behind() -> None:
    source = Scripted(slow=True)

    async def follow() -> None:
        async with reading_ahead(source) as ahead:
            await ahead.delta(REF, None)
            await ahead.delta(REF, "1")

    task = asyncio.create_task(follow())
    await turns()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert source.ended == ["None", "1"]

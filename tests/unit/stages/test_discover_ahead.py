"""The next pages of a listing are fetched while those before them are written."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from drivefeed.domain.errors import CursorExpired
from drivefeed.domain.remote import DeltaPage, DriveRef, RemoteItem
from drivefeed.stages.discover_ahead import MOST_ITEMS, MOST_PAGES, reading_ahead

REF = DriveRef("account", "drive")


@dataclass
class Scripted:
    """Pages ``1`` to ``last``; what is asked for is remembered."""

    failing: dict[str, Exception] = field(default_factory=dict)
    asked: list[str | None] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    slow: bool = False
    last: int = 3
    items: int = 0

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
        is_last = number == self.last
        told = tuple(RemoteItem(f"{number}-{each}") for each in range(self.items))
        return DeltaPage(told, None if is_last else str(number), "end" if is_last else None)


async def turns() -> None:
    for _ in range(60):
        await asyncio.sleep(0)


async def test_pages_are_asked_for_before_anybody_wants_them_and_only_once() -> None:
    source = Scripted()
    async with reading_ahead(source) as ahead:
        first = await ahead.delta(REF, None)
        await turns()
        assert source.asked == [None, "1", "2"]
        second = await ahead.delta(REF, first.next_link)
        await turns()
        third = await ahead.delta(REF, second.next_link)
        await turns()
    assert third.delta_link == "end"
    assert source.asked == [None, "1", "2"]


async def test_no_more_lie_fetched_than_the_bounds_of_items_and_pages() -> None:
    full = Scripted(last=90, items=MOST_ITEMS // 4)
    async with reading_ahead(full) as ahead:
        page = await ahead.delta(REF, None)
        await turns()
        assert full.asked == [None, "1", "2", "3", "4"]
        await ahead.delta(REF, page.next_link)
        await turns()
        assert full.asked[5:] == ["5"]
    bare = Scripted(last=90)
    async with reading_ahead(bare) as ahead:
        await ahead.delta(REF, None)
        await turns()
        assert len(bare.asked) == 1 + MOST_PAGES
    each = Scripted(last=90)
    async with reading_ahead(each, most_pages=0) as ahead:
        await ahead.delta(REF, None)
        await turns()
        assert each.asked == [None]


async def test_a_page_that_lies_there_can_be_looked_at_and_stays() -> None:
    source = Scripted(failing={"2": CursorExpired("The link is too old.")})
    async with reading_ahead(source) as ahead:
        assert await ahead.at_hand(REF, "1", within=0) is None
        await ahead.delta(REF, None)
        assert await ahead.at_hand(REF, "2", within=0) is None
        page = await ahead.at_hand(REF, "1", within=30)
        assert page is not None
        assert await ahead.at_hand(REF, "1", within=0) is page
        assert await ahead.delta(REF, "1") is page
        assert await ahead.at_hand(REF, "2", within=30) is None
        with pytest.raises(CursorExpired):
            await ahead.delta(REF, "2")
        assert source.asked == [None, "1", "2"]


async def test_a_page_that_is_long_in_coming_is_not_waited_for() -> None:
    source = Scripted(slow=True)
    async with reading_ahead(source) as ahead:
        await ahead.delta(REF, None)
        assert await ahead.at_hand(REF, "1", within=0.01) is None
        assert source.ended == ["None"]


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

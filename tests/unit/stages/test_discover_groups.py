"""Pages that lie fetched are applied together, in one commit, and found again after a death."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.tables import items
from drivefeed.domain.errors import Transient
from drivefeed.domain.remote import DeltaPage, DriveRef, RemoteItem
from drivefeed.stages import discover_groups
from drivefeed.stages.discover_ahead import reading_ahead
from drivefeed.stages.discover_pages import follow_page
from support.clock import CountedIds, ManualClock
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive

_TREE = (ROOT, folder("docs"))


class Death(BaseException):
    """The process ends at a checkpoint."""


@dataclass
class Life:
    """Counts the checkpoints that are passed; at one of them it ends."""

    ends_at: tuple[str, int] = ("", 0)
    passed: Counter[str] = field(default_factory=Counter)

    def __call__(self, name: str) -> None:
        self.passed[name] += 1
        if (name, self.passed[name]) == self.ends_at:
            raise Death


@dataclass
class Listing:
    """A drive of some pages; each tells what ``pages`` says, under the links ``0``, ``1`` …"""

    pages: list[tuple[RemoteItem, ...]]
    failing: set[str] = field(default_factory=set)
    links: dict[str, str] = field(default_factory=dict)
    asked: list[str | None] = field(default_factory=list)
    whole: dict[str, RemoteItem] = field(default_factory=dict)

    async def delta(self, drive: DriveRef, link: str | None) -> DeltaPage:
        del drive
        self.asked.append(link)
        if link in self.failing:
            raise Transient("Microsoft Graph does not answer.")
        number = int(link or 0)
        following = self.links.get(str(number), str(number + 1))
        is_last = number == len(self.pages) - 1
        return DeltaPage(
            self.pages[number], None if is_last else following, "end" if is_last else None
        )

    async def item(self, drive: DriveRef, item_id: str) -> RemoteItem:
        del drive
        self.asked.append(item_id)
        return self.whole[item_id]


@pytest.fixture
def life() -> Life:
    return Life()


@pytest.fixture
async def rig(catalog_url: str, life: Life) -> AsyncIterator[Rig]:
    catalog = await open_catalog(
        catalog_url, clock=ManualClock(), ids=CountedIds(), checkpoint=life
    )
    made = await Rig.make(catalog)
    await made.connect()
    await made.scan()
    yield made
    await catalog.aclose()


def files(count: int, each: int = 2) -> list[tuple[RemoteItem, ...]]:
    """A page with the folder, and pages of files in it."""
    names = [[f"{number}-{one}" for one in range(each)] for number in range(1, count)]
    return [_TREE, *(tuple(file(name, "docs") for name in page) for page in names)]


async def follow(catalog: Catalog, listing: Listing, drive: Drive, *, most: int = 99) -> Drive:
    """Follow a drive until its round is complete; all that can lie fetched does."""
    async with reading_ahead(listing) as ahead:
        for _ in range(most):
            drive = await follow_page(catalog, ahead, drive)
            if drive.settling:
                break
            for _ in range(100):
                await asyncio.sleep(0)
    return drive


async def test_pages_that_lie_fetched_are_one_commit_behind_the_first(rig: Rig, life: Life) -> None:
    listing = Listing(files(6))
    drive = await follow(rig.catalog, listing, await rig.drive())
    assert life.passed["page.commit.after"] == 2
    assert drive == await rig.drive()
    assert (drive.cursor, drive.settling, drive.enumerating) == ("end", True, False)
    assert set(await rig.wanted()) == {f"{page}-{one}" for page in range(1, 6) for one in range(2)}
    assert listing.asked == [None, "1", "2", "3", "4", "5"]


async def test_a_group_is_bounded_by_its_items(
    rig: Rig, life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discover_groups, "MOST_ITEMS", 4)
    drive = await follow(rig.catalog, Listing(files(8)), await rig.drive(), most=2)
    assert (life.passed["page.commit.after"], drive.pages_in_round, drive.cursor) == (2, 3, "3")


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_who_dies_around_the_commit_of_a_group_goes_on_where_its_links_say(
    rig: Rig, life: Life, moment: str
) -> None:
    listing = Listing(files(6))
    life.ends_at = (f"page.commit.{moment}", 2)
    with pytest.raises(Death):
        await follow(rig.catalog, listing, await rig.drive())
    left = await rig.drive()
    told = {row["item_id"] for row in await rig.rows(items)}
    if moment == "before":
        assert (left.cursor, left.pages_in_round) == ("1", 1)
        assert told == {"root", "docs"}
        assert await rig.wanted() == {}
    else:
        assert (left.cursor, left.settling) == ("end", True)
        assert len(told) == 12
    life.ends_at = ("", 0)
    if moment == "before":
        listing.asked.clear()
        left = await follow(rig.catalog, listing, left)
        assert listing.asked == ["1", "2", "3", "4", "5"]
    await rig.settle()
    assert set(await rig.wanted()) == {f"{page}-{one}" for page in range(1, 6) for one in range(2)}


async def test_who_dies_between_two_groups_goes_on_behind_the_first(
    rig: Rig, life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(discover_groups, "MOST_ITEMS", 4)
    listing = Listing(files(8))
    life.ends_at = ("page.commit.before", 3)
    with pytest.raises(Death):
        await follow(rig.catalog, listing, await rig.drive())
    left = await rig.drive()
    assert (left.cursor, left.pages_in_round) == ("3", 3)
    assert set(await rig.wanted()) == {"1-0", "1-1", "2-0", "2-1"}
    life.ends_at = ("", 0)
    listing.asked.clear()
    await follow(rig.catalog, listing, left)
    assert listing.asked[0] == "3"
    assert len(await rig.wanted()) == 14


async def test_a_page_that_fails_keeps_those_before_it_from_nothing(rig: Rig, life: Life) -> None:
    listing = Listing(files(6), failing={"4"})
    with pytest.raises(Transient):
        await follow(rig.catalog, listing, await rig.drive())
    left = await rig.drive()
    assert (left.cursor, left.pages_in_round, life.passed["page.commit.after"]) == ("4", 4, 2)
    assert len(await rig.wanted()) == 6
    listing.failing.clear()
    await follow(rig.catalog, listing, left)
    assert len(await rig.wanted()) == 10


@pytest.mark.parametrize(("last", "back_to"), [("3", "1"), ("4", "2")])
async def test_a_page_that_leads_to_one_of_its_group_is_not_taken_into_it(
    rig: Rig, life: Life, last: str, back_to: str
) -> None:
    """A circle goes round as slowly as it would page by page."""
    listing = Listing(files(6), links={last: back_to})
    drive = await follow(rig.catalog, listing, await rig.drive(), most=2)
    assert (drive.cursor, drive.pages_in_round) == (last, int(last))
    assert life.passed["page.commit.after"] == 2


async def test_what_is_told_by_halves_begins_a_group_of_its_own(rig: Rig, life: Life) -> None:
    """It may have been told a page before, and is asked for by its id as what is known."""
    half = RemoteItem("1-0", parent_id="docs", kind=file("1-0").kind, etag="another", size=11)
    pages = [*files(3), (half,), *files(3)[1:]]
    listing = Listing(pages, whole={"1-0": file("1-0", "docs", "2", name="renamed.txt")})
    drive = await follow(rig.catalog, listing, await rig.drive())
    assert drive.settling
    assert listing.asked.count("1-0") == 1
    assert life.passed["page.commit.after"] == 4


async def test_pages_that_tell_nothing_new_count_one_by_one(
    rig: Rig, life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("drivefeed.domain.delta_guards.MOST_BARREN_PAGES", 4)
    listing = Listing([*files(2), *(() for _ in range(9)), _TREE])
    drive = await follow(rig.catalog, listing, await rig.drive(), most=3)
    # Of a group at most as many pages as may tell nothing new.
    assert drive.pages_in_round == 9
    assert drive.barren_pages == 4
    assert life.passed["page.commit.after"] == 3

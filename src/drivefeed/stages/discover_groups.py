"""Several pages as one: what lies fetched already is applied in one transaction.

A transaction costs as much as some hundred items, so a listing whose pages come faster than they
are written is written in larger pieces. A group is what one larger page would have been, which
the service may send at any time: applied whole, with the link of its last page in the same commit.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from drivefeed.domain.delta_guards import RoundSoFar, leads_nowhere
from drivefeed.domain.remote import DeltaPage, ItemKind
from drivefeed.stages.discover_doubts import is_half

if TYPE_CHECKING:
    from drivefeed.catalog.sources import Drive
    from drivefeed.stages.discover_ahead import ReadingAhead

MOST_ITEMS: Final = 1_000
"""Items of a group that do not let another page join; writing them keeps others from writing."""
LONGEST_WAIT_SECONDS: Final = 0.5
"""How long the pages of a group may be waited for, counted from its first one."""


async def with_those_at_hand(source: ReadingAhead, drive: Drive, first: DeltaPage) -> DeltaPage:
    """Return a page together with those that follow it and are there already.

    The first page of a round stays alone, so that its files are soon on their way. A page with
    which anything is wrong, or about which the source has to be asked, begins a group of its own;
    what is wrong with it is found then.

    Args:
        first: the page that the drive's link led to; nothing is wrong with it.
    """
    if drive.pages_in_round == 0:
        return first
    pages = [first]
    items = len(first.items)
    began = time.monotonic()
    while items < MOST_ITEMS and (link := pages[-1].next_link) is not None:
        within = began + LONGEST_WAIT_SECONDS - time.monotonic()
        page = await source.at_hand(drive.ref, link, within=within)
        if page is None or not _may_join(drive, pages, page):
            break
        # The same page, taken from where it lay.
        pages.append(await source.delta(drive.ref, link))
        items += len(page.items)
    if len(pages) == 1:
        return first
    return DeltaPage(
        items=tuple(one for page in pages for one in page.items),
        next_link=pages[-1].next_link,
        delta_link=pages[-1].delta_link,
        pages=len(pages),
    )


def _may_join(drive: Drive, pages: list[DeltaPage], page: DeltaPage) -> bool:
    if (page.next_link is None) == (page.delta_link is None):
        return False
    # Nobody knows yet whether the pages before it tell anything new.
    so_far = RoundSoFar(
        cursor=pages[-1].next_link,
        pages=drive.pages_in_round + len(pages),
        barren=drive.barren_pages + len(pages),
        enumerating=drive.enumerating,
        given_up=drive.given_up,
    )
    if leads_nowhere(so_far, page) is not None or page.next_link in {
        drive.cursor,
        *(one.next_link for one in pages),
    }:
        return False
    return not any(is_half(one) for one in page.items) and not has_another_root(drive, page)


def has_another_root(drive: Drive, page: DeltaPage) -> bool:
    """Whether changes are told of another root than the one that is known."""
    known = drive.root_item_id
    if drive.enumerating or known is None:
        return False
    told = [one for one in page.items if one.kind is ItemKind.ROOT and not one.deleted]
    return bool(told) and all(one.item_id.casefold() != known.casefold() for one in told)

"""Asks the source by id for what it told by halves, and for what a completed round left unclear."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from drivefeed.catalog import pages_doubts
from drivefeed.catalog.tree import known_items
from drivefeed.domain.errors import NeedsAttention, NotFound
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import ItemKind

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.remote import DeltaPage, RemoteItem
    from drivefeed.ports import Source
    from drivefeed.stages.discover_ahead import ReadingAhead

_MOST_DOUBTS = 1_000
"""Items that are asked for after one round."""
_AT_ONCE = 50
"""Items that are asked for at a time, and after one page."""


async def completed(
    catalog: Catalog, source: ReadingAhead, drive: Drive, page: DeltaPage
) -> DeltaPage:
    """Return a page with what it told by halves of items that are known, as they are.

    What is left out counts as before. Where that is the name or the folder, the change that the
    item is told for may be just that, and nothing else would ever tell of it. New items without
    them are asked for when the round is complete.

    Raises:
        DrivefeedError: the source cannot be asked; the page has to be fetched again.
    """
    halves = {one.item_id for one in page.items if is_half(one)}
    if not halves:
        return page
    async with catalog.read() as connection:
        known = await known_items(connection, drive.drive_id, halves)
    whole: dict[str, RemoteItem] = {}
    for key in sorted(known)[:_AT_ONCE]:
        found = await _asked_for(source, drive, key)
        if found is not None:
            whole[key] = found
    items = tuple(whole.get(one.item_id, one) if is_half(one) else one for one in page.items)
    return replace(page, items=items)


def is_half(one: RemoteItem) -> bool:
    """Tell whether an item was told without its name or its folder."""
    has_place = one.parent_id is not None or one.kind is ItemKind.ROOT
    return not one.deleted and not (one.name and has_place)


async def clear_doubts(catalog: Catalog, source: Source, drive: Drive) -> None:
    """Ask by id for what a completed round left unclear, before it is settled.

    Raises:
        DrivefeedError: the source cannot be asked; the round stays unsettled.
    """
    asked: set[str] = set()
    while len(asked) < _MOST_DOUBTS:
        ids = await pages_doubts.doubtful(catalog, drive, asked=asked, limit=_AT_ONCE)
        if not ids:
            return
        asked.update(ids)
        found = [one for key in ids if (one := await _asked_for(source, drive, key)) is not None]
        await pages_doubts.learn(catalog, drive, found)


async def _asked_for(
    source: Source | ReadingAhead, drive: Drive, item_id: str
) -> RemoteItem | None:
    try:
        return await source.item(drive.ref, item_id)
    except NotFound:
        return None
    except NeedsAttention as error:
        if error.reason is not Reason.ACCESS_DENIED:
            raise
        return None

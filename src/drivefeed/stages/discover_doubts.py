"""Asks the source by id for what a completed round left unclear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.catalog import pages_doubts
from drivefeed.domain.errors import NeedsAttention, NotFound
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.remote import RemoteItem
    from drivefeed.ports import Source

_MOST_DOUBTS = 1_000
"""Items that are asked for after one round."""
_AT_ONCE = 50


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


async def _asked_for(source: Source, drive: Drive, item_id: str) -> RemoteItem | None:
    try:
        return await source.item(drive.ref, item_id)
    except NotFound:
        return None
    except NeedsAttention as error:
        if error.reason is not Reason.ACCESS_DENIED:
            raise
        return None

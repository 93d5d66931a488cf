"""The next page of a listing is fetched while the one before it is written.

Waiting for Microsoft Graph and waiting for the database are then one wait. What is fetched ahead
is one page, is only read, and is used only if its link is the one that is followed next.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.domain.remote import DeltaPage, DriveRef, RemoteItem
    from drivefeed.ports import Source


class Pages(Protocol):
    """What a drive is followed by."""

    async def delta(self, drive: DriveRef, link: str | None) -> DeltaPage:
        """Fetch one page; see :meth:`drivefeed.ports.Source.delta`."""
        ...

    async def item(self, drive: DriveRef, item_id: str) -> RemoteItem:
        """Fetch one item; see :meth:`drivefeed.ports.Source.item`."""
        ...


class ReadingAhead:
    """Pages of one listing; made by :func:`reading_ahead`."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._ahead: tuple[DriveRef, str, asyncio.Task[DeltaPage]] | None = None

    async def delta(self, drive: DriveRef, link: str | None) -> DeltaPage:
        """Return a page as :meth:`drivefeed.ports.Source.delta` does, and begin the next one.

        Raises:
            DrivefeedError: as the source says; also what went wrong ahead is told only here.
        """
        page = await self._fetched(drive, link)
        if page.next_link is not None and page.next_link != link:
            task = asyncio.create_task(
                self._source.delta(drive, page.next_link), name="delta ahead"
            )
            self._ahead = drive, page.next_link, task
        return page

    async def item(self, drive: DriveRef, item_id: str) -> RemoteItem:
        """Fetch one item as :meth:`drivefeed.ports.Source.item` does."""
        return await self._source.item(drive, item_id)

    async def _fetched(self, drive: DriveRef, link: str | None) -> DeltaPage:
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            return await self._source.delta(drive, link)
        if ahead[:2] == (drive, link):
            try:
                return await ahead[2]
            finally:
                await _given_up(ahead[2])
        await _given_up(ahead[2])
        return await self._source.delta(drive, link)

    async def aclose(self) -> None:
        """Give up what was fetched ahead and not asked for."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            await _given_up(ahead[2])


async def _given_up(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        # Looked at, so that nobody is told of an error that has no consequence.
        task.exception()


@asynccontextmanager
async def reading_ahead(source: Source) -> AsyncIterator[ReadingAhead]:
    """Read pages ahead while the block lasts; nothing of it goes on afterwards."""
    ahead = ReadingAhead(source)
    try:
        yield ahead
    finally:
        await ahead.aclose()

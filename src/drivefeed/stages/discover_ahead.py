"""The next pages of a round are fetched while those before them are written.

Waiting for Microsoft Graph and waiting for the database are then one wait. What is fetched ahead
is bounded, is only read, and is used only if its link is the one that is followed next.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.domain.remote import DeltaPage, DriveRef, RemoteItem
    from drivefeed.ports import Source

MOST_ITEMS: Final = 2_000
"""Items that lie fetched before another page is asked for; one has about a kilobyte."""
MOST_PAGES: Final = 20
"""Pages that lie fetched, however little they tell."""


class ReadingAhead:
    """Pages of one round after the other; made by :func:`reading_ahead`."""

    def __init__(self, source: Source, *, most_pages: int) -> None:
        self._source = source
        self._most_pages = most_pages
        self._ahead: deque[tuple[DriveRef, str, asyncio.Task[DeltaPage]]] = deque()
        self._is_closed = False

    async def delta(self, drive: DriveRef, link: str | None) -> DeltaPage:
        """Return a page as :meth:`drivefeed.ports.Source.delta` does, and go on to the next ones.

        Raises:
            DrivefeedError: as the source says; also what went wrong ahead is told only here.
        """
        if not self._ahead or self._ahead[0][:2] != (drive, link):
            await self._give_up()
            page = await self._source.delta(drive, link)
        else:
            task = self._ahead.popleft()[2]
            try:
                page = await task
            finally:
                await _given_up(task)
        if self._ahead:
            self._go_on()
        else:
            self._begin(drive, link, page)
        return page

    async def at_hand(self, drive: DriveRef, link: str, *, within: float) -> DeltaPage | None:
        """Look at a page that is fetched ahead, which stays to be returned by :meth:`delta`.

        Args:
            within: seconds to wait for it.

        Returns:
            The page; None where it is not there by then, or something is wrong with it.
        """
        if not self._ahead or self._ahead[0][:2] != (drive, link):
            return None
        task = self._ahead[0][2]
        if not task.done() and within > 0:
            await asyncio.wait({task}, timeout=within)
        if not task.done() or task.cancelled() or task.exception() is not None:
            return None
        return task.result()

    async def item(self, drive: DriveRef, item_id: str) -> RemoteItem:
        """Fetch one item as :meth:`drivefeed.ports.Source.item` does."""
        return await self._source.item(drive, item_id)

    def _begin(self, drive: DriveRef, link: str | None, page: DeltaPage) -> None:
        following = page.next_link
        if following is None or following == link or self._is_closed or not self._most_pages:
            return
        task = asyncio.create_task(self._source.delta(drive, following), name="delta ahead")
        self._ahead.append((drive, following, task))
        task.add_done_callback(lambda _: self._go_on())

    def _go_on(self) -> None:
        """Fetch what follows the last page, where that is there and there is room for more."""
        if not self._ahead or len(self._ahead) >= self._most_pages:
            return
        drive, link, task = self._ahead[-1]
        if not task.done() or task.cancelled() or task.exception() is not None:
            return
        waiting = sum(len(each.result().items) for _, _, each in self._ahead)
        if waiting < MOST_ITEMS:
            self._begin(drive, link, task.result())

    async def _give_up(self) -> None:
        ahead = [task for _, _, task in self._ahead]
        self._ahead.clear()
        for task in ahead:
            await _given_up(task)

    async def aclose(self) -> None:
        """Give up what was fetched ahead and not asked for."""
        self._is_closed = True
        await self._give_up()


async def _given_up(task: asyncio.Task[Any]) -> None:
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        # Looked at, so that nobody is told of an error that has no consequence.
        task.exception()


@asynccontextmanager
async def reading_ahead(
    source: Source, *, most_pages: int = MOST_PAGES
) -> AsyncIterator[ReadingAhead]:
    """Read pages ahead while the block lasts; nothing of it goes on afterwards.

    Args:
        most_pages: how many lie fetched at most; 0 to fetch each when it is asked for.
    """
    ahead = ReadingAhead(source, most_pages=most_pages)
    try:
        yield ahead
    finally:
        await ahead.aclose()

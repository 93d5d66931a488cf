"""Lists a drive outside of its schedule, so that a plan counts what is there now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from drivefeed.catalog import pages
from drivefeed.catalog.sources import connections_in, fetch_drive
from drivefeed.domain.errors import Throttled, Transient
from drivefeed.domain.retry import backoff_ms
from drivefeed.stages.discover_ahead import reading_ahead
from drivefeed.stages.discover_pages import follow_page

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.ports import Source
    from drivefeed.stages.discover_ahead import ReadingAhead

_ATTEMPTS: Final = 5

Found = TypeVar("Found")


async def list_to_end(
    catalog: Catalog, source: Source, drive: Drive, tell: Callable[[int], None] | None = None
) -> tuple[Drive, int]:
    """Follow a drive's changes to the end of a round; the first time that lists all of it.

    A running daemon may do the same at the same time: pages are applied once. While it settles a
    round the tree is complete, and is taken as it is.

    Returns:
        The drive, and when its tree was up to date (milliseconds since the epoch).
    """
    drive = await _settled(catalog, drive)
    async with reading_ahead(source) as ahead:
        while not drive.settling:
            drive = await _follow_patiently(catalog, ahead, drive)
            if tell is not None:
                tell(drive.pages_in_round)
    listed_at = catalog.clock.now()
    return await _settled(catalog, drive), listed_at


async def _settled(catalog: Catalog, drive: Drive) -> Drive:
    """Settle a round of a drive without connections: nobody else will, it has no schedule."""
    async with catalog.read() as connection:
        is_connected = bool(await connections_in(connection, drive.drive_id))
    if is_connected or not drive.settling:
        return drive
    while await pages.settle_some(catalog, drive.drive_id):
        pass
    return await fetch_drive(catalog, drive.drive_id)


async def _follow_patiently(catalog: Catalog, source: ReadingAhead, drive: Drive) -> Drive:
    async def follow() -> Drive:
        return await follow_page(catalog, source, await fetch_drive(catalog, drive.drive_id))

    return await patiently(catalog, drive, follow)


async def patiently(catalog: Catalog, drive: Drive, ask: Callable[[], Awaitable[Found]]) -> Found:
    """Ask a source as often as it takes for a fault to pass, a few times at most.

    Raises:
        DrivefeedError: it does not pass.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            return await ask()
        except Throttled as error:
            await catalog.clock.sleep(error.seconds)
        except Transient:
            if attempt == _ATTEMPTS:
                raise
            await catalog.clock.sleep(backoff_ms(attempt, fraction=catalog.ids.fraction()) / 1000)
    raise Transient(f"Microsoft keeps limiting how often drive '{drive.name}' is read; try later.")

"""Another way to a drive, where the account it is read through lost its right or its sign-in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.catalog.routes import other_routes, read_through
from drivefeed.domain.access import OF_ACCOUNT
from drivefeed.domain.errors import CursorExpired, DrivefeedError, NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import redact
from drivefeed.domain.remote import DriveRef
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.ports import Source

_OTHERS_MAY_SEE = OF_ACCOUNT | {Reason.ACCESS_DENIED, Reason.GRANT_MISSING, Reason.DRIVE_GONE}

_log = log("routes")


async def find_other_route(
    catalog: Catalog, source: Source, drive: Drive, error: NeedsAttention
) -> bool:
    """Read a drive through another account of its org, where one can go on from where it stands.

    Returns:
        Whether the drive has another account now.
    """
    if error.reason not in _OTHERS_MAY_SEE:
        return False
    for account_id in await other_routes(catalog, drive):
        if await _goes_on(source, drive, account_id):
            why = redact(str(error))
            await read_through(catalog, drive, account_id, why=why)
            _log.warning("account_changed", drive=drive.name, account_id=account_id, why=why)
            return True
    return False


async def _goes_on(source: Source, drive: Drive, account_id: str) -> bool:
    """Whether an account is told the changes; being shown the drive itself is not enough."""
    there = DriveRef(account_id, drive.remote_id)
    try:
        await source.delta(there, drive.cursor)
    except CursorExpired:
        # A link may be good for one app alone.
        try:
            await source.delta(there, None)
        except DrivefeedError:
            return False
    except DrivefeedError:
        return False
    return True

"""Where a round begins, where it goes back to, and since when it does not get on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import update

from drivefeed.catalog.sources import drive_in
from drivefeed.catalog.tables import drives

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive

FRESH_ROUND: dict[str, Any] = {"pages_in_round": 0, "barren_pages": 0, "round_link": None}
"""What a drive's row says where no page of a round was applied yet."""


async def begin_enumeration(catalog: Catalog, drive: Drive) -> Drive:
    """Start a full enumeration as a new generation; the old position is given up.

    Where one was under way already, that counts as a round that was given up.
    """
    async with catalog.write("enumeration") as connection:
        await connection.execute(
            update(drives)
            .where(
                drives.c.id == drive.drive_id,
                drives.c.generation == drive.generation,
                # Whoever lists a drive for a plan may come in between a round and its settling.
                drives.c.settling.is_(False),
            )
            .values(
                generation=drive.generation + 1,
                enumerating=True,
                cursor=None,
                given_up=drive.given_up + drive.enumerating,
                **FRESH_ROUND,
            )
        )
        return await drive_in(connection, drive.drive_id)


async def give_up_round(catalog: Catalog, drive: Drive) -> Drive:
    """Go back to where a round began; where that was of no use the last time, list everything.

    What its pages told stays in the tree: all of it is told again. Where somebody else has moved
    the cursor meanwhile, nothing happens.

    Returns:
        The drive as it is now; ``given_up`` says how many rounds in a row ended so.
    """
    async with catalog.write("round.give_up") as connection:
        current = await drive_in(connection, drive.drive_id, lock=True)
        if (current.cursor, current.generation) != (drive.cursor, drive.generation):
            return current
        start = current.cursor if current.pages_in_round == 0 else current.round_link
        values: dict[str, Any] = {"given_up": current.given_up + 1, **FRESH_ROUND}
        if current.given_up or current.enumerating or start is None:
            values |= {"generation": current.generation + 1, "enumerating": True, "cursor": None}
        else:
            values |= {"cursor": start}
        await connection.execute(update(drives).where(drives.c.id == drive.drive_id).values(values))
        return await drive_in(connection, drive.drive_id)


async def note_failing(catalog: Catalog, drive: Drive) -> int:
    """Note that the link to follow failed, and return since when it does."""
    if drive.failing_since is not None:
        return drive.failing_since
    now = catalog.clock.now()
    async with catalog.write("round.failing") as connection:
        await connection.execute(
            update(drives).where(drives.c.id == drive.drive_id).values(failing_since=now)
        )
    return now

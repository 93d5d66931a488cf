"""A Postgres as a doctor sees it: asked without being changed, not even migrated."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from drivefeed.catalog.database import PostgresLimits
from drivefeed.catalog.database_clock import DatabaseClock
from drivefeed.catalog.migrating import ran
from drivefeed.catalog.postgres import PostgresDatabase
from drivefeed.domain.errors import DrivefeedError

if TYPE_CHECKING:
    from drivefeed.ports import Clock


@dataclass(frozen=True, slots=True)
class Server:
    """What a server said.

    Attributes:
        trouble: why it did not say anything, as a sentence; empty where it did.
        migration: the newest migration that was run; empty for none.
        version: its name and version.
        ahead_ms: how far its clock is ahead of ours.
    """

    trouble: str = ""
    migration: str = ""
    version: str = ""
    ahead_ms: int = 0


def ask(url: str, clock: Clock) -> Server:
    """Ask a Postgres; blocks, so call it in a thread."""
    return asyncio.run(_ask(url, clock))


async def _ask(url: str, own: Clock) -> Server:
    clock = DatabaseClock(own)
    database = PostgresDatabase(url, PostgresLimits(connections=1), clock=clock)
    try:
        async with database.reader() as connection:
            migration = await connection.run_sync(ran)
            version = str(await connection.scalar(text("SHOW server_version")))
    except DrivefeedError as error:
        return Server(trouble=str(error))
    except DBAPIError as error:
        return Server(trouble=str(database.translated(error, writes=False) or error.orig))
    finally:
        await database.aclose()
    return Server(
        migration=migration,
        version=f"Postgres {version.partition(' ')[0]}",
        ahead_ms=clock.ahead_ms,
    )

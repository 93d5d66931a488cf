"""Which processes are alive, and who holds which lease."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import delete, select

from drivefeed.catalog import reminders
from drivefeed.catalog.dialect import insert, insert_for
from drivefeed.catalog.parts_down import DEAD_AFTER_MS, tell_down
from drivefeed.catalog.tables import heartbeats, leases

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.parts_down import Down


@cache
def _alive(dialect: str) -> Any:
    """Return what says that a process is alive; said all day, so it is put together once."""
    said = insert_for(dialect, heartbeats)
    again = {"seen_at": said.excluded.seen_at}
    return said.on_conflict_do_update(index_elements=["owner"], set_=again)


async def beat(
    catalog: Catalog, owner: str, role: str, *, down: Mapping[str, Down] | None = None
) -> None:
    """Say that a process is alive.

    Args:
        down: what it finds down, by name; None where that is as it was told before.
    """
    now = catalog.clock.now()
    async with catalog.write("heartbeat", beside=True) as connection:
        await say_alive(connection, owner, role, now=now)
        if down is not None:
            await tell_down(connection, owner, down)


async def say_alive(connection: AsyncConnection, owner: str, role: str, *, now: int) -> None:
    """Write down that a process is alive."""
    said = {"owner": owner, "role": role, "started_at": now, "seen_at": now}
    await connection.execute(_alive(connection.dialect.name), said)


async def leave(catalog: Catalog, owner: str) -> int:
    """A process ends, or is known to be dead: its rows are due again at once."""
    async with catalog.write("leave") as connection:
        await connection.execute(delete(heartbeats).where(heartbeats.c.owner == owner))
        now = catalog.clock.now()
        return await reminders.free_rows_of_dead_owners(
            connection, now=now, dead_before=now - DEAD_AFTER_MS
        )


async def reap(catalog: Catalog, *, own: str) -> int:
    """Make rows of dead processes due again; return how many.

    Args:
        own: who asks. A process that is too busy to say so is not dead, and knows it.
    """
    now = catalog.clock.now()
    dead_before = now - DEAD_AFTER_MS
    async with catalog.read() as connection:
        if not await reminders.has_rows_of_dead_owners(
            connection, dead_before=dead_before, own=own
        ):
            return 0
    async with catalog.write("reap") as connection:
        freed = await reminders.free_rows_of_dead_owners(
            connection, now=now, dead_before=dead_before, own=own
        )
        await connection.execute(
            delete(heartbeats).where(heartbeats.c.seen_at < dead_before - 10 * DEAD_AFTER_MS)
        )
    return freed


async def alive(catalog: Catalog) -> list[str]:
    """Return the owners whose heartbeat is fresh."""
    now = catalog.clock.now()
    async with catalog.read() as connection:
        return [str(row.owner) for row in await seen_lately(connection, now=now)]


async def seen_lately(connection: AsyncConnection, *, now: int) -> Sequence[Row[Any]]:
    """Return the rows of those whose heartbeat is fresh: owner, role, when they were seen."""
    fresh = heartbeats.c.seen_at >= now - DEAD_AFTER_MS
    return (await connection.execute(select(heartbeats).where(fresh))).all()


async def take_lease(catalog: Catalog, name: str, owner: str, *, for_ms: int) -> int | None:
    """Take or renew a lease; return its term, or None while somebody else holds it.

    The term rises whenever the holder changes, so that a late writer can be told from the
    present one.
    """
    now = catalog.clock.now()
    async with catalog.write("lease.take", beside=True) as connection:
        statement = insert(connection, leases).values(
            name=name, owner=owner, term=1, until=now + for_ms
        )
        await connection.execute(
            statement.on_conflict_do_update(
                index_elements=["name"],
                set_={
                    "term": leases.c.term + 1,
                    "owner": owner,
                    "until": now + for_ms,
                },
                where=leases.c.until < now,
            )
        )
        await connection.execute(
            leases.update()
            .where(leases.c.name == name, leases.c.owner == owner)
            .values(until=now + for_ms)
        )
        row = await connection.execute(
            select(leases.c.term).where(leases.c.name == name, leases.c.owner == owner)
        )
        term = row.scalar_one_or_none()
    return int(term) if term is not None else None


async def release_lease(catalog: Catalog, name: str, owner: str) -> None:
    """Give a lease back; nothing happens where somebody else holds it.

    The row stays, so that the next term is a higher one.
    """
    async with catalog.write("lease.release", beside=True) as connection:
        await connection.execute(
            leases.update().where(leases.c.name == name, leases.c.owner == owner).values(until=0)
        )

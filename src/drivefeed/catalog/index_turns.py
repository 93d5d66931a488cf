"""Who has a vector index of a server open, and who alone may rebuild it: leases, decided together.

Many processes may write to the index of a server. A rebuild puts another collection in use and
removes the former one, which the others would not notice; so it has its turn only while nobody else
has the index open, and nobody opens it meanwhile. Both are asked in transactions that are alone.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sqlalchemy import delete, select, update

from drivefeed.catalog.dialect import insert
from drivefeed.catalog.tables import leases
from drivefeed.domain.errors import Transient

if TYPE_CHECKING:
    from sqlalchemy import Row
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog


def _turn(index: str) -> str:
    # Names of leases are short, and those of collections may be long.
    return f"rebuild {hashlib.sha256(index.encode()).hexdigest()[:16]}"


def _use(index: str) -> str:
    return f"open {hashlib.sha256(index.encode()).hexdigest()[:16]} "


async def enter(catalog: Catalog, index: str, owner: str, *, for_ms: int) -> int | None:
    """Note that a process has the index open; None while another one rebuilds it.

    Returns:
        The term of the last rebuild: :func:`stay` tells whether there was another since.
    """
    now = catalog.clock.now()
    async with catalog.write("reindex.enter") as connection:
        turn = await _held(connection, _turn(index))
        if turn is not None and turn.until >= now and turn.owner != owner:
            return None
        await connection.execute(
            delete(leases).where(leases.c.name.startswith(_use(index)), leases.c.until < now)
        )
        await _put(connection, _use(index) + owner, owner, term=0, until=now + for_ms)
        return turn.term if turn is not None else 0


async def stay(catalog: Catalog, index: str, owner: str, *, term: int, for_ms: int) -> bool:
    """Have the index for longer, and the turn if it is this process's; False if it was rebuilt.

    Args:
        term: as :func:`enter` or :func:`take_turn` told it.
    """
    now = catalog.clock.now()
    async with catalog.write("reindex.stay") as connection:
        turn = await _held(connection, _turn(index))
        if turn is not None and turn.term != term:
            return False
        await _put(connection, _use(index) + owner, owner, term=0, until=now + for_ms)
        await connection.execute(
            update(leases)
            .where(leases.c.name == _turn(index), leases.c.owner == owner, leases.c.until >= now)
            .values(until=now + for_ms)
        )
    return True


async def take_turn(
    catalog: Catalog, index: str, owner: str, *, for_ms: int
) -> tuple[int, int | None]:
    """Have the index alone, to rebuild it.

    Returns:
        How many other processes have it open, and the term of the turn; None where there are any.
    """
    now = catalog.clock.now()
    async with catalog.write("reindex.turn") as connection:
        turn = await _held(connection, _turn(index))
        rows = await connection.execute(
            select(leases.c.owner).where(
                leases.c.name.startswith(_use(index)),
                leases.c.until >= now,
                leases.c.owner != owner,
            )
        )
        others = {str(one) for one in rows.scalars()}
        if turn is not None and turn.until >= now and turn.owner != owner:
            others.add(turn.owner)
        if others:
            return len(others), None
        term = (turn.term if turn is not None else 0) + 1
        await _put(connection, _turn(index), owner, term=term, until=now + for_ms)
    return 0, term


async def require_turn(connection: AsyncConnection, index: str, owner: str, *, now: int) -> None:
    """Make sure, within a transaction, that a process still has the index alone.

    Raises:
        Transient: its time is over, so another one may have it.
    """
    turn = await _held(connection, _turn(index))
    if turn is None or turn.owner != owner or turn.until < now:
        raise Transient(
            "This process stood still while it rebuilt the index, and another one may do it now."
        )


async def end_turn(catalog: Catalog, index: str, owner: str) -> None:
    """Let others open the index. The row stays, so that the next term is a higher one."""
    async with catalog.write("reindex.turn_end") as connection:
        await _end_turn(connection, index, owner)


async def leave(catalog: Catalog, index: str, owner: str) -> None:
    """Note that a process has the index open no more, nor its turn."""
    async with catalog.write("reindex.leave") as connection:
        await connection.execute(delete(leases).where(leases.c.name == _use(index) + owner))
        await _end_turn(connection, index, owner)


async def _end_turn(connection: AsyncConnection, index: str, owner: str) -> None:
    await connection.execute(
        update(leases).where(leases.c.name == _turn(index), leases.c.owner == owner).values(until=0)
    )


async def _held(connection: AsyncConnection, name: str) -> Row[tuple[str, int, int]] | None:
    rows = await connection.execute(
        select(leases.c.owner, leases.c.term, leases.c.until).where(leases.c.name == name)
    )
    return rows.one_or_none()


async def _put(
    connection: AsyncConnection, name: str, owner: str, *, term: int, until: int
) -> None:
    values = {"owner": owner, "term": term, "until": until}
    await connection.execute(
        insert(connection, leases)
        .values(name=name, **values)
        .on_conflict_do_update(index_elements=["name"], set_=values)
    )

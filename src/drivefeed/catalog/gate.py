"""The gate of new downloads as rows: what waits to be indexed, and who shut it and why."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import BigInteger, bindparam, delete, func, select, text

from drivefeed.catalog.dialect import insert
from drivefeed.catalog.progress import TRANSFERS_HELD
from drivefeed.catalog.tables import UNINDEXED, facts, imports
from drivefeed.domain.gate import Backlog, Gate
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog

STALE_AFTER_MS: Final = 5 * 60_000
"""What a machine said counts for so long; it says it again while it is so."""
_PREFIX: Final = "gate:"
_LONGEST_HOST: Final = 70


# Asked all day, so it is put together once.
_SOME = (
    select(imports.c.org_id, imports.c.size)
    .where(text(UNINDEXED))
    .limit(bindparam("most", type_=BigInteger))
    .subquery("some")
)
COUNTED_BACKLOG: Final = select(
    _SOME.c.org_id, func.count().label("files"), func.sum(_SOME.c.size).label("size")
).group_by(_SOME.c.org_id)
"""Rows of (org, files, bytes) of ``most`` files."""


async def backlog_of(catalog: Catalog, *, most: int) -> Backlog:
    """Count what is stored and on its way into the index, by organization.

    Args:
        most: files that are looked at; of more, it is only known that there are so many.
    """
    async with catalog.read() as connection:
        rows = await connection.execute(COUNTED_BACKLOG, {"most": most})
        return Backlog({row.org_id: (row.files, int(row.size or 0)) for row in rows})


async def tell_gate(catalog: Catalog, host: str, gate: Gate) -> None:
    """Write down that a machine holds downloads, or that it does no more."""
    name = _PREFIX + host[:_LONGEST_HOST]
    async with catalog.write("gate") as connection:
        if gate.is_shut:
            await _put(connection, TRANSFERS_HELD, str(gate.reason))
        else:
            await connection.execute(delete(facts).where(facts.c.name == TRANSFERS_HELD))
        if gate.reason is None:
            await connection.execute(delete(facts).where(facts.c.name == name))
            return
        value = json.dumps(
            {
                "reason": gate.reason,
                "words": gate.words,
                "since": gate.since,
                "orgs": sorted(gate.orgs),
                "at": catalog.clock.now(),
            }
        )
        await _put(connection, name, value)


async def _put(connection: AsyncConnection, name: str, value: str) -> None:
    statement = insert(connection, facts).values(name=name, value=value)
    await connection.execute(
        statement.on_conflict_do_update(index_elements=["name"], set_={"value": value})
    )


async def gates_told(catalog: Catalog) -> dict[str, Gate]:
    """Return what holds downloads, by machine."""
    async with catalog.read() as connection:
        return await read_gates(connection, now=catalog.clock.now())


async def read_gates(connection: AsyncConnection, *, now: int) -> dict[str, Gate]:
    """Return the same within a transaction."""
    rows = await connection.execute(
        select(facts).where(facts.c.name > _PREFIX, facts.c.name < _PREFIX + "~")
    )
    told: dict[str, dict[str, Any]] = {
        row.name.removeprefix(_PREFIX): json.loads(row.value) for row in rows
    }
    return {
        host: Gate(
            reason=Reason(said["reason"]),
            words=said["words"],
            orgs=frozenset(said["orgs"]),
            since=said["since"],
        )
        for host, said in told.items()
        if said["at"] >= now - STALE_AFTER_MS
    }

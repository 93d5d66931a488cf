"""The one process that may work on a catalog, where parts of it lie in that process's data folder.

A lock in the folder keeps a second process off the folder. Where the catalog is elsewhere, one with
a folder of its own passes that lock: its queue and its objects would be its own, and what the other
one has under way would count as abandoned. So the catalog knows the folder of the process that it
belongs to, and a process with another folder asks who is alive.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, select

from drivefeed.catalog import reminders
from drivefeed.catalog.dialect import upsert
from drivefeed.catalog.heartbeats import say_alive, seen_lately
from drivefeed.catalog.parts_down import DEAD_AFTER_MS
from drivefeed.catalog.tables import facts, heartbeats, leases

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog

_FACT: Final = "sole_process"


@dataclass(frozen=True, slots=True)
class Process:
    """A process that works on a catalog.

    Attributes:
        owner: as it signs claims.
        role: as in ``drivefeed ROLE``.
        seen_at: when it last said that it is alive.
    """

    owner: str
    role: str
    seen_at: int


@dataclass(frozen=True, slots=True)
class Standing:
    """Who works on a catalog.

    Attributes:
        folder: the data folder of the one process it belonged to last, by its identity; None where
            it always was of many.
        owner: that process.
        alive: who said lately that it is alive, by owner.
    """

    folder: str | None
    owner: str | None
    alive: dict[str, Process]

    @property
    def sole(self) -> dict[str, Process]:
        """The one it belonged to last, while that is alive."""
        return {name: one for name, one in self.alive.items() if name == self.owner}


async def standing(catalog: Catalog) -> Standing:
    """Return who works on the catalog."""
    async with catalog.read() as connection:
        return await _standing(connection, now=catalog.clock.now())


async def _standing(connection: AsyncConnection, *, now: int) -> Standing:
    told = await connection.execute(select(facts.c.value).where(facts.c.name == _FACT))
    value = told.scalar_one_or_none()
    rows = await seen_lately(connection, now=now)
    alive = {row.owner: Process(row.owner, row.role, row.seen_at) for row in rows}
    sole = json.loads(value) if value else {}
    return Standing(sole.get("folder"), sole.get("owner"), alive)


@dataclass(frozen=True, slots=True)
class Taken:
    """A catalog was taken.

    Attributes:
        freed: how many rows are due again.
        rival: who took it just before, so that nothing was done; or None.
    """

    freed: int = 0
    rival: Process | None = None


async def take(
    catalog: Catalog, owner: str, role: str, *, folder: str | None = None, dead: frozenset[str]
) -> Taken:
    """Begin as the only process of a catalog: whoever had it before is dead, and needs no lease.

    Args:
        folder: the identity of the data folder; None where the catalog lies in it, so that the
            folder's lock has kept everybody else off the catalog.
        dead: who said lately that it is alive, and is known not to be.
    """
    async with catalog.write("bury") as connection:
        now = catalog.clock.now()
        if folder is not None:
            before = await _standing(connection, now=now)
            rivals = [one for name, one in before.alive.items() if name not in dead]
            if rivals:
                return Taken(rival=rivals[0])
            value = json.dumps({"folder": folder, "owner": owner})
            await upsert(connection, facts, [{"name": _FACT, "value": value}])
        of_role = heartbeats.c.role == role
        was_theirs = leases.c.owner.in_(select(heartbeats.c.owner).where(of_role))
        await connection.execute(leases.update().where(was_theirs).values(until=0))
        await connection.execute(delete(heartbeats).where(of_role))
        await say_alive(connection, owner, role, now=now)
        return Taken(
            freed=await reminders.free_rows_of_dead_owners(
                connection, now=now, dead_before=now - DEAD_AFTER_MS
            )
        )

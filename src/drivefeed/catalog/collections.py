"""Which collection of the vector index is in use, which is being built beside it, and how far."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from drivefeed.catalog.dialect import upsert
from drivefeed.catalog.tables import facts, reindexed

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog


@dataclass(frozen=True, slots=True)
class Made:
    """A collection, and what its vectors were made with.

    Attributes:
        name: the collection on a Qdrant server, or the folder of the embedded index.
        provider, model, dimension: of the embedder.
    """

    name: str
    provider: str
    model: str
    dimension: int

    @property
    def embedding(self) -> tuple[str, str, int]:
        """What tells its vectors from others."""
        return self.provider, self.model, self.dimension

    @property
    def words(self) -> str:
        """Return it for a sentence."""
        return f"'{self.model}' ({self.provider}, {self.dimension} numbers)"


@dataclass(frozen=True, slots=True)
class Collections:
    """All collections of one vector index.

    Attributes:
        active: what search asks; None before anything was imported.
        building: what a reindex builds.
        old: names of collections that are to be removed.
        number: how many reindexes there were, for the next one's name.
        leave_out: whether files that could not be read again may be missing after the swap.
    """

    active: Made | None = None
    building: Made | None = None
    old: tuple[str, ...] = ()
    number: int = 1
    leave_out: bool = False


async def collections_of(catalog: Catalog, index: str) -> Collections:
    """Return what is known of an index.

    Args:
        index: names the index; an installation may change between the embedded and a server's.
    """
    async with catalog.read() as connection:
        return await _read(connection, index)


async def remember_active(catalog: Catalog, index: str, made: Made) -> Collections:
    """Record what the first collection is made with, unless something is recorded already."""
    async with catalog.write("collection.remember") as connection:
        found = await _read(connection, index)
        if found.active is None:
            found = replace(found, active=made)
            await _write(connection, index, found)
    return found


async def begin_building(
    catalog: Catalog, index: str, wanted: Made, *, leave_out: bool
) -> Collections:
    """Record that a collection is being built; one that is being built already goes on.

    What could not be read again is tried once more, unless it may be left out.

    Args:
        index: names the index.
        wanted: what to make it with; its name gets a number.
        leave_out: whether files that cannot be read again may be missing.
    """
    async with catalog.write("collection.begin") as connection:
        found = await _read(connection, index)
        if found.building is None:
            number = found.number + 1
            named = replace(wanted, name=f"{wanted.name}-{number}")
            found = replace(found, building=named, number=number)
        found = replace(found, leave_out=leave_out)
        await _write(connection, index, found)
        if found.building is not None and not leave_out:
            mine = reindexed.c.collection == found.building.name
            await connection.execute(reindexed.delete().where(mine, reindexed.c.chunks.is_(None)))
    return found


async def give_up_building(catalog: Catalog, index: str) -> Collections:
    """Record that what was being built is to be removed."""
    async with catalog.write("collection.give_up") as connection:
        found = await _read(connection, index)
        if found.building is not None:
            name = found.building.name
            found = replace(found, building=None, old=(*found.old, name))
            await connection.execute(reindexed.delete().where(reindexed.c.collection == name))
            await _write(connection, index, found)
    return found


async def put_in_use(connection: AsyncConnection, index: str) -> Collections:
    """Make the collection that was built the active one; the former is to be removed."""
    found = await _read(connection, index)
    assert found.building is not None
    former = (found.active.name,) if found.active else ()
    found = replace(
        found, active=found.building, building=None, old=(*found.old, *former), leave_out=False
    )
    await _write(connection, index, found)
    return found


async def forget_old(catalog: Catalog, index: str, name: str) -> None:
    """Record that an old collection was removed."""
    async with catalog.write("collection.forget") as connection:
        found = await _read(connection, index)
        kept = tuple(one for one in found.old if one != name)
        await _write(connection, index, replace(found, old=kept))


async def _read(connection: AsyncConnection, index: str) -> Collections:
    row = await connection.execute(select(facts.c.value).where(facts.c.name == _fact(index)))
    value = row.scalar_one_or_none()
    if value is None:
        return Collections()
    known: dict[str, Any] = json.loads(value)
    return Collections(
        active=_made(known["active"]),
        building=_made(known["building"]),
        old=tuple(known["old"]),
        number=known["number"],
        leave_out=known["leave_out"],
    )


def _made(known: dict[str, Any] | None) -> Made | None:
    return Made(**known) if known else None


async def _write(connection: AsyncConnection, index: str, found: Collections) -> None:
    await upsert(connection, facts, [{"name": _fact(index), "value": json.dumps(asdict(found))}])


def _fact(index: str) -> str:
    return f"index:{index}"[:80]

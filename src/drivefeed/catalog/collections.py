"""Which collections of the vector index are in use, which are being built beside them, and whose.

The installation has a collection in which the documents of all organizations are. An organization
that chose an embedding of its own has another one, once that was built and put in use. What is
asked for is told by :mod:`drivefeed.catalog.org_embeddings`; what *is*, by the rows of this module.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from sqlalchemy import and_, delete, exists, select, update

from drivefeed.catalog.dialect import upsert
from drivefeed.catalog.index_tables import collections, org_embeddings
from drivefeed.catalog.tables import imports, reindexed

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog

COSINE = "cosine"
ALL = ""
"""Instead of an organization's id: all who have no collection of their own."""


class Standing(StrEnum):
    """What a collection is to whoever it belongs to."""

    ACTIVE = "active"
    BUILDING = "building"
    OLD = "old"
    LEAVING = "leaving"
    GONE = "gone"


@dataclass(frozen=True, slots=True)
class Made:
    """A collection, and what its vectors were made with.

    Attributes:
        name: the collection on a Qdrant server, or the folder of the embedded index.
        provider, model, dimension: of the embedder.
        choice_id: an organization's choice, which opens the embedder; None for the settings.
        distance: by which vectors are compared.
    """

    name: str
    provider: str
    model: str
    dimension: int
    choice_id: str | None = None
    distance: str = COSINE

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
    """All collections of one vector index that one organization has, or all others together.

    Attributes:
        active: what search asks; None before anything was imported, and for an organization
            whose documents are in the common collection.
        building: what a reindex builds.
        is_returning: whether that is the common collection, which is in use by others.
        old: names of collections that are to be removed.
        leaving: names of common collections that still hold points of the organization.
        number: how many there were, for the next one's name.
        leave_out: whether files that could not be read again may be missing after the swap.
    """

    active: Made | None = None
    building: Made | None = None
    is_returning: bool = False
    old: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()
    number: int = 0
    leave_out: bool = False
    _numbers: dict[str, int] = field(default_factory=dict, repr=False, compare=False)


async def collections_of(catalog: Catalog, index: str, org_id: str = ALL) -> Collections:
    """Return what is known of an index.

    Args:
        index: names the index; an installation may change between the embedded and a server's.
        org_id: whose.
    """
    async with catalog.read() as connection:
        return await _read(connection, index, org_id)


async def orgs_with_collections(catalog: Catalog, index: str) -> list[str]:
    """Return the ids of organizations that have a collection of their own, or had or build one."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(collections.c.org_id)
            .where(
                collections.c.index_name == index,
                collections.c.org_id != ALL,
                collections.c.state != Standing.GONE,
            )
            .distinct()
            .order_by(collections.c.org_id)
        )
        return [str(org_id) for org_id in rows.scalars()]


async def remember_active(catalog: Catalog, index: str, made: Made) -> Collections:
    """Record what the first collection is made with, unless something is recorded already."""
    async with catalog.write("collection.remember") as connection:
        found = await _read(connection, index, ALL)
        if found.active is None:
            await _put(connection, index, ALL, made, Standing.ACTIVE, number=found.number + 1)
        return await _read(connection, index, ALL)


def next_name(known: Collections, wanted: Made, org_id: str = ALL) -> str:
    """Return the name of the next collection: the base's, the organization's, and a number."""
    whose = f"{wanted.name}-org-{org_id}" if org_id else wanted.name
    return f"{whose}-{known.number + 1}"


async def begin_building(
    catalog: Catalog,
    index: str,
    wanted: Made,
    *,
    leave_out: bool,
    org_id: str = ALL,
    is_returning: bool = False,
) -> Collections:
    """Record that a collection is being built; one that is being built already goes on.

    What could not be read again is tried once more, unless it may be left out.

    Args:
        index: names the index.
        wanted: what to make it with; its name gets a number.
        leave_out: whether files that cannot be read again may be missing.
        org_id: whose documents it is for.
        is_returning: build in the common collection, whose name is ``wanted.name`` as it is.
    """
    async with catalog.write("collection.begin") as connection:
        found = await _read(connection, index, org_id)
        made, number = found.building, found.number + 1
        if made is None:
            made = (
                wanted if is_returning else replace(wanted, name=next_name(found, wanted, org_id))
            )
            number = 0 if is_returning else number
            await _put(connection, index, org_id, made, Standing.BUILDING, number=number)
        await connection.execute(
            update(collections).where(_is(index, org_id, made.name)).values(leave_out=leave_out)
        )
        if not leave_out:
            await _unbuild(connection, made.name, org_id, reindexed.c.chunks.is_(None))
        return await _read(connection, index, org_id)


async def give_up_building(catalog: Catalog, index: str, org_id: str = ALL) -> Collections:
    """Record that what was being built is to be removed."""
    async with catalog.write("collection.give_up") as connection:
        found = await _read(connection, index, org_id)
        if found.building is not None:
            left = Standing.LEAVING if found.is_returning else Standing.OLD
            await _set_state(connection, index, org_id, found.building.name, left)
            await _unbuild(connection, found.building.name, org_id)
            await forget_choices(connection)
        return await _read(connection, index, org_id)


async def put_in_use(connection: AsyncConnection, index: str, org_id: str = ALL) -> Collections:
    """Make the collection that was built the active one; the former is to be removed.

    From a common collection, which others go on using, only the organization's points are.
    """
    found = await _read(connection, index, org_id)
    built = found.building
    assert built is not None
    await _unbuild(connection, built.name, org_id)
    if found.active is not None:
        await _set_state(connection, index, org_id, found.active.name, Standing.OLD)
    elif org_id:
        common = await _read(connection, index, ALL)
        for left in (common.active, common.building):
            if left is not None:
                await _put(connection, index, org_id, left, Standing.LEAVING, number=0)
                await _unbuild(connection, left.name, org_id)
    if found.is_returning:
        await connection.execute(delete(collections).where(_is(index, org_id, built.name)))
    else:
        await _set_state(connection, index, org_id, built.name, Standing.ACTIVE)
    await forget_choices(connection)
    return await _read(connection, index, org_id)


async def forget_old(catalog: Catalog, index: str, name: str, org_id: str = ALL) -> None:
    """Record that an old collection was removed, or the points that were left in it."""
    async with catalog.write("collection.forget") as connection:
        found = await _read(connection, index, org_id)
        number = found._numbers.get(name, 0)  # noqa: SLF001 - this module's own
        if number and number == found.number:
            # The next one must not have its name: somebody may still write to it.
            await _set_state(connection, index, org_id, name, Standing.GONE)
        else:
            await connection.execute(delete(collections).where(_is(index, org_id, name)))


def has_its_own(index: str, org_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that an organization's documents are in a collection of its own."""
    return exists().where(
        collections.c.index_name == index,
        collections.c.org_id == org_id,
        collections.c.org_id != ALL,
        collections.c.state == Standing.ACTIVE,
    )


async def _read(connection: AsyncConnection, index: str, org_id: str) -> Collections:
    rows = await connection.execute(
        select(collections)
        .where(collections.c.index_name == index, collections.c.org_id == org_id)
        .order_by(collections.c.number, collections.c.name)
    )
    found = list(rows)
    made = {
        row.state: Made(
            row.name, row.provider, row.model, row.dimension, row.choice_id, row.distance
        )
        for row in found
    }
    building = next((row for row in found if row.state == Standing.BUILDING), None)
    return Collections(
        active=made.get(Standing.ACTIVE),
        building=made.get(Standing.BUILDING),
        is_returning=building is not None and bool(org_id) and not building.number,
        old=tuple(row.name for row in found if row.state == Standing.OLD),
        leaving=tuple(row.name for row in found if row.state == Standing.LEAVING),
        number=max((row.number for row in found), default=0),
        leave_out=building is not None and building.leave_out,
        _numbers={row.name: row.number for row in found},
    )


async def _put(
    connection: AsyncConnection,
    index: str,
    org_id: str,
    made: Made,
    state: Standing,
    *,
    number: int,
) -> None:
    row = {
        "index_name": index,
        "org_id": org_id,
        "name": made.name,
        "state": state,
        "provider": made.provider,
        "model": made.model,
        "dimension": made.dimension,
        "distance": made.distance,
        "number": number,
        "choice_id": made.choice_id,
    }
    await upsert(connection, collections, [row])


async def _set_state(
    connection: AsyncConnection, index: str, org_id: str, name: str, state: Standing
) -> None:
    await connection.execute(
        update(collections).where(_is(index, org_id, name)).values(state=state, leave_out=False)
    )


async def _unbuild(
    connection: AsyncConnection, name: str, org_id: str, *where: ColumnElement[bool]
) -> None:
    """Forget what was built of a collection, of one organization alone where one is named."""
    if org_id:
        where = (*where, reindexed.c.import_id.in_(_imports_of(org_id)))
    await connection.execute(delete(reindexed).where(reindexed.c.collection == name, *where))


def _imports_of(org_id: str) -> ColumnElement[str]:
    found: ColumnElement[str] = select(imports.c.id).where(imports.c.org_id == org_id)  # type: ignore[assignment]
    return found


async def forget_choices(connection: AsyncConnection) -> None:
    """Remove what no organization asks for any more and no collection is made with."""
    is_used = exists().where(
        collections.c.choice_id == org_embeddings.c.id,
        collections.c.state.in_([Standing.ACTIVE, Standing.BUILDING]),
    )
    await connection.execute(
        delete(org_embeddings).where(org_embeddings.c.wanted.is_(False), ~is_used)
    )


def _is(index: str, org_id: str, name: str) -> ColumnElement[bool]:
    return and_(
        collections.c.index_name == index,
        collections.c.org_id == org_id,
        collections.c.name == name,
    )

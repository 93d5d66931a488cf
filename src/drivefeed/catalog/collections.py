"""Which collections of the vector index are in use, which are being built beside them, and whose.

The installation has a collection in which the documents of all organizations are. An organization
that chose an embedding of its own has another one, once that was built and put in use. What is
asked for is told by :mod:`drivefeed.catalog.org_embeddings`; what *is*, by the rows of this module.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import delete, exists, select, update

from drivefeed.catalog.collection_rows import (
    ALL,
    Standing,
    is_row,
    put,
    read,
    set_state,
)
from drivefeed.catalog.index_tables import collections, org_embeddings
from drivefeed.catalog.tables import imports, reindexed

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.collection_rows import Collections, Made
    from drivefeed.catalog.engine import Catalog


async def collections_of(catalog: Catalog, index: str, org_id: str = ALL) -> Collections:
    """Return what is known of an index.

    Args:
        index: names the index; an installation may change between the embedded and a server's.
        org_id: whose.
    """
    async with catalog.read() as connection:
        return await read(connection, index, org_id)


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


async def in_use(catalog: Catalog, index: str, org_id: str) -> Made | None:
    """Return the collection that an organization's documents are in; None before there is any."""
    async with catalog.read() as connection:
        own = await read(connection, index, org_id)
        return own.active or (await read(connection, index, ALL)).active


async def remember_active(catalog: Catalog, index: str, made: Made) -> Collections:
    """Record what the first collection is made with, unless something is recorded already."""
    async with catalog.write("collection.remember") as connection:
        found = await read(connection, index, ALL)
        if found.active is None:
            await put(connection, index, ALL, made, Standing.ACTIVE, number=found.number + 1)
        return await read(connection, index, ALL)


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
        found = await read(connection, index, org_id)
        made, number = found.building, found.number + 1
        if made is None:
            made = wanted
            if is_returning:
                number = 0
            else:
                made = replace(wanted, name=next_name(found, wanted, org_id))
            await put(connection, index, org_id, made, Standing.BUILDING, number=number)
        await connection.execute(
            update(collections).where(is_row(index, org_id, made.name)).values(leave_out=leave_out)
        )
        if not leave_out:
            await _unbuild(connection, made.name, org_id, reindexed.c.chunks.is_(None))
        return await read(connection, index, org_id)


async def give_up_building(catalog: Catalog, index: str, org_id: str = ALL) -> Collections:
    """Record that what was being built is to be removed."""
    async with catalog.write("collection.give_up") as connection:
        found = await read(connection, index, org_id)
        if found.building is not None:
            left = Standing.LEAVING if found.is_returning else Standing.OLD
            await set_state(connection, index, org_id, found.building.name, left)
            await _unbuild(connection, found.building.name, org_id)
            await forget_choices(connection)
        return await read(connection, index, org_id)


async def put_in_use(connection: AsyncConnection, index: str, org_id: str = ALL) -> Collections:
    """Make the collection that was built the active one; the former is to be removed.

    From a common collection, which others go on using, only the organization's points are.
    """
    found = await read(connection, index, org_id)
    built = found.building
    assert built is not None
    await _unbuild(connection, built.name, org_id)
    if found.active is not None:
        await set_state(connection, index, org_id, found.active.name, Standing.OLD)
    elif org_id:
        common = await read(connection, index, ALL)
        for left in (common.active, common.building):
            if left is not None:
                await put(connection, index, org_id, left, Standing.LEAVING, number=0)
                await _unbuild(connection, left.name, org_id)
    if found.is_returning:
        await connection.execute(delete(collections).where(is_row(index, org_id, built.name)))
    else:
        await set_state(connection, index, org_id, built.name, Standing.ACTIVE)
    await forget_choices(connection)
    return await read(connection, index, org_id)


async def forget_old(catalog: Catalog, index: str, name: str, org_id: str = ALL) -> None:
    """Record that an old collection was removed, or the points that were left in it."""
    async with catalog.write("collection.forget") as connection:
        found = await read(connection, index, org_id)
        number = found.numbers.get(name, 0)
        if number and number == found.number:
            # The next one must not have its name: somebody may still write to it.
            await set_state(connection, index, org_id, name, Standing.GONE)
        else:
            await connection.execute(delete(collections).where(is_row(index, org_id, name)))


def has_its_own(index: str, org_id: ColumnElement[str]) -> ColumnElement[bool]:
    """Return the condition that an organization's documents are in a collection of its own."""
    return exists().where(
        collections.c.index_name == index,
        collections.c.org_id == org_id,
        collections.c.org_id != ALL,
        collections.c.state == Standing.ACTIVE,
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

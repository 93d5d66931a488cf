"""The rows that say what collections there are: read as values, and written one at a time."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from sqlalchemy import and_, select, update

from drivefeed.catalog.dialect import upsert
from drivefeed.catalog.index_tables import collections

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

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
        numbers: of each collection, by name.
    """

    active: Made | None = None
    building: Made | None = None
    is_returning: bool = False
    old: tuple[str, ...] = ()
    leaving: tuple[str, ...] = ()
    number: int = 0
    leave_out: bool = False
    numbers: dict[str, int] = field(default_factory=dict, repr=False, compare=False)


async def read(connection: AsyncConnection, index: str, org_id: str) -> Collections:
    """Return what is known of an index, for one organization or all others."""
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
        numbers={row.name: row.number for row in found},
    )


async def put(
    connection: AsyncConnection,
    index: str,
    org_id: str,
    made: Made,
    state: Standing,
    *,
    number: int,
) -> None:
    """Write a collection's row, whatever was there."""
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


async def set_state(
    connection: AsyncConnection, index: str, org_id: str, name: str, state: Standing
) -> None:
    """Say what a collection is from now on."""
    await connection.execute(
        update(collections).where(is_row(index, org_id, name)).values(state=state, leave_out=False)
    )


def is_row(index: str, org_id: str, name: str) -> ColumnElement[bool]:
    """Return the condition that a row is this collection's."""
    return and_(
        collections.c.index_name == index,
        collections.c.org_id == org_id,
        collections.c.name == name,
    )

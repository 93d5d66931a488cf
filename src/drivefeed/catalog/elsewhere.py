"""Versions that other backends than our own made searchable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, case, select

from drivefeed.catalog.tables import documents, imports
from drivefeed.domain.lifecycle import State
from drivefeed.domain.policy_options import EMBEDDED

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A version that was settled at another backend than our own.

    Attributes:
        shown: whether it is wanted, and what search should show.
    """

    import_id: str
    round: int
    backend: str
    shown: bool


async def settled_elsewhere(catalog: Catalog, after: str, *, limit: int) -> list[Elsewhere]:
    """Return the next versions that other backends made searchable, by id, behind ``after``."""
    d, one = documents.c, imports.c
    is_shown = and_(
        d.wanted_import_id == one.id, d.live_import_id == one.id, d.live_round == one.round
    )
    query = (
        select(one.id, one.round, one.backend, case((is_shown, True), else_=False))
        .join(documents, d.id == one.document_id)
        .where(
            imports.c.id > after,
            imports.c.state == State.SETTLED,
            imports.c.backend.is_not(None),
            imports.c.backend != EMBEDDED,
        )
        .order_by(imports.c.id)
        .limit(limit)
    )
    async with catalog.read() as connection:
        rows = await connection.execute(query)
        return [Elsewhere(row[0], row[1], row[2], shown=bool(row[3])) for row in rows]

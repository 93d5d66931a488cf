"""What the catalog believes about source, store and index, for the sync certificate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, select

from drivefeed.catalog.tables import coverage, documents, imports, items
from drivefeed.domain.identity import object_key
from drivefeed.domain.lifecycle import State
from drivefeed.domain.policy_options import EMBEDDED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.catalog.engine import Catalog

_PAGE = 2_000


@dataclass(frozen=True, slots=True)
class Effect:
    """What an import has outside, as the catalog believes.

    Attributes:
        object_key: where its bytes are; may not be there yet while it is discovered.
        chunks: how many points it has; None while it is not settled.
        live: whether it is what search shows.
        indexed_here: whether its points are in our own index; not those of other backends.
    """

    import_id: str
    round: int
    state: State
    object_key: str
    size: int | None
    chunks: int | None
    live: bool
    indexed_here: bool = True


async def effects(catalog: Catalog) -> AsyncIterator[Effect]:
    """Yield every import that is not withdrawn, by id."""
    after = ""
    while True:
        async with catalog.read() as connection:
            rows = await connection.execute(
                select(
                    imports,
                    documents.c.live_import_id,
                    documents.c.live_round,
                )
                .join(documents, documents.c.id == imports.c.document_id)
                .where(imports.c.id > after, imports.c.state != State.WITHDRAWN)
                .order_by(imports.c.id)
                .limit(_PAGE)
            )
            found = rows.mappings().all()
        for row in found:
            yield Effect(
                import_id=row["id"],
                round=row["round"],
                state=State(row["state"]),
                object_key=object_key(row["org_id"], row["document_id"], row["id"], row["round"]),
                size=row["size"],
                chunks=row["chunks"],
                live=(row["live_import_id"], row["live_round"]) == (row["id"], row["round"]),
                indexed_here=row["backend"] in {None, EMBEDDED},
            )
        if len(found) < _PAGE:
            return
        after = str(found[-1]["id"])


@dataclass(frozen=True, slots=True)
class CoveredItem:
    """A file a connection knows, as the tree last saw it."""

    item_id: str
    name: str
    quick_xor: str | None
    etag: str | None
    leaving: bool


async def covered_items(
    catalog: Catalog, connection_id: str, drive_id: str
) -> dict[str, CoveredItem]:
    """Return all files a connection admitted or skipped."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(
                coverage.c.item_id,
                coverage.c.leaving,
                items.c.name,
                items.c.quick_xor,
                items.c.etag,
            )
            .join(
                items,
                and_(items.c.item_id == coverage.c.item_id, items.c.drive_id == drive_id),
            )
            .where(coverage.c.connection_id == connection_id)
        )
        return {
            row.item_id: CoveredItem(
                row.item_id, row.name, row.quick_xor, row.etag, row.leaving is not None
            )
            for row in rows
        }

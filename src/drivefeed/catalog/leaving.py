"""Removals that a completed round found: counted first, braked if too many, then applied."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import delete, func, select, update

from drivefeed.catalog import reminders
from drivefeed.catalog.dialect import batches
from drivefeed.catalog.documents import load, wanting_nothing
from drivefeed.catalog.settling import Change, admitted_somewhere, settle_all
from drivefeed.catalog.sources import connection_in
from drivefeed.catalog.tables import connections, coverage
from drivefeed.domain.delta import braked
from drivefeed.domain.errors import NotFound
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection

_NOT_THERE = frozenset({Reason.REMOVED_AT_SOURCE, Reason.OUT_OF_SCOPE})
_CHUNK = 200
"""Removals in one transaction of an approval; each takes a few statements."""


async def count_leaving(connection: AsyncConnection, connection_id: str) -> int:
    """Return how many documents are to leave a connection."""
    return await _count(connection, connection_id, coverage.c.leaving.is_not(None))


async def _count(
    connection: AsyncConnection, connection_id: str, which: ColumnElement[bool]
) -> int:
    row = await connection.execute(
        select(func.count())
        .select_from(coverage)
        .where(coverage.c.connection_id == connection_id, which)
    )
    return int(row.scalar_one())


async def brake_or_pass(connection: AsyncConnection, each: Connection) -> bool:
    """Tell whether a connection's removals may be applied; if they are too many, ask a person.

    A brake lets go by itself only when nothing is left to remove, because all came back.
    """
    policy = each.policy
    leaving = await count_leaving(connection, each.connection_id)
    if not leaving:
        if each.attention is Reason.MASS_REMOVAL:
            await _calm(connection, each.connection_id)
        return True
    if each.attention is Reason.MASS_REMOVAL:
        return False

    def brakes(documents: int) -> bool:
        return braked(
            removals=leaving,
            documents=documents,
            count=policy.brake_count,
            percent=policy.brake_percent,
            floor=policy.brake_floor,
        )

    # So few are let go whatever the connection has; counting a million rows takes seconds.
    if not brakes(0):
        return True
    documents = await _count(connection, each.connection_id, coverage.c.admitted)
    if not brakes(documents):
        return True
    await connection.execute(
        update(connections)
        .where(connections.c.id == each.connection_id)
        .values(
            attention=Reason.MASS_REMOVAL,
            detail=f"{leaving} of {documents} documents disappeared at once.",
        )
    )
    return False


async def apply_leaving(
    connection: AsyncConnection, each: Connection, *, now: int, limit: int
) -> int:
    """Apply some of a connection's removals; return how many, 0 when none are left.

    A document whose last admission goes wants nothing any more: it is hidden at once, and its
    content is erased after the connection's grace.
    """
    rows = (
        await connection.execute(
            select(coverage)
            .where(coverage.c.connection_id == each.connection_id, coverage.c.leaving.is_not(None))
            .limit(limit)
        )
    ).mappings()
    leaving = list(rows)
    known = await load(connection, [row["document_id"] for row in leaving], lock=True)
    left = {row["item_id"]: row["reason"] in _NOT_THERE for row in leaving}
    here = coverage.c.connection_id == each.connection_id
    for batch in batches(key for key, is_gone in left.items() if is_gone):
        await connection.execute(delete(coverage).where(here, coverage.c.item_id.in_(batch)))
    for batch in batches(key for key, is_gone in left.items() if not is_gone):
        await connection.execute(
            update(coverage)
            .where(here, coverage.c.item_id.in_(batch))
            .values(admitted=False, leaving=None)
        )
    kept = await admitted_somewhere(connection, known)
    changes: dict[str, Change] = {}
    for row in leaving:
        document_id = row["document_id"]
        if document_id in kept:
            continue
        before, imports = known[document_id]
        document = wanting_nothing(
            before, reason=Reason(row["leaving"]), erase_at=now + each.policy.grace_ms
        )
        changes.setdefault(document_id, Change(before, document, imports))
    await settle_all(connection, list(changes.values()), now=now, lane=reminders.LANE_FRESH)
    return len(leaving)


async def approve_removals(catalog: Catalog, connection_id: str) -> int:
    """A person approved: apply everything that is leaving. Return how many documents left.

    Where the connected folder itself is gone, everything it brought leaves. Each chunk is a
    transaction of its own; until the last one the connection stays under Attention, so an
    approval that was interrupted can be given again.
    """
    done = 0
    async with catalog.write("removals.approve") as connection:
        each = await _connection(connection, connection_id)
        if each.attention is Reason.FOLDER_GONE:
            await connection.execute(
                update(coverage)
                .where(coverage.c.connection_id == connection_id, coverage.c.admitted)
                .values(leaving=Reason.REMOVED_AT_SOURCE, reason=Reason.REMOVED_AT_SOURCE)
            )
    while True:
        async with catalog.write("removals.apply") as connection:
            now = catalog.clock.now()
            count = await apply_leaving(connection, each, now=now, limit=_CHUNK)
            done += count
            if count < _CHUNK:
                await _calm(connection, connection_id)
                return done


async def discard_removals(catalog: Catalog, connection_id: str) -> int:
    """A person wants the documents kept although the source no longer has them."""
    async with catalog.write("removals.discard") as connection:
        await _connection(connection, connection_id)
        result = await connection.execute(
            update(coverage)
            .where(coverage.c.connection_id == connection_id, coverage.c.leaving.is_not(None))
            .values(leaving=None, reason=None)
        )
        await _calm(connection, connection_id)
    return int(result.rowcount)


async def _connection(connection: AsyncConnection, connection_id: str) -> Connection:
    found = await connection_in(connection, connection_id)
    if found is None:
        raise NotFound(f"There is no connection {connection_id} in the catalog.")
    return found


async def _calm(connection: AsyncConnection, connection_id: str) -> None:
    await connection.execute(
        update(connections)
        .where(connections.c.id == connection_id, connections.c.attention == Reason.MASS_REMOVAL)
        .values(attention=None, detail=None)
    )

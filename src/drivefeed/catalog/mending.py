"""What a repair writes: what follows from the facts is written once more, never decided anew.

A document is converged again, its imports get the reminders that follow, and counters become what
the ledger adds up to. Import and index have their own ways back in
:mod:`drivefeed.catalog.restoring`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select, update

from drivefeed.catalog.documents import load, record_event, settle_into
from drivefeed.catalog.quota_limits import used_since
from drivefeed.catalog.tables import coverage, documents, imports, index_jobs, orgs
from drivefeed.catalog.usage_tables import reservations
from drivefeed.domain.lifecycle import State
from drivefeed.ports import IndexJobState

if TYPE_CHECKING:
    from collections.abc import Collection

    from drivefeed.catalog.engine import Catalog


async def converge_again(catalog: Catalog, document_id: str, *, detail: str) -> bool:
    """Write what follows from the facts of a document: what is live, and what is due for whom.

    Returns:
        False where there is no such document, or nobody says what it wants: then only its item
        can tell.
    """
    now = catalog.clock.now()
    async with catalog.write("mend.converge", beside=True) as connection:
        found = await load(connection, [document_id], lock=True)
        if document_id not in found:
            return False
        before, known = found[document_id]
        if before.wanted is None and before.unwanted_reason is None:
            # Nobody removed it: to converge now would withdraw what is there.
            return False
        if before.wanted is not None and before.wanted not in known:
            return False
        for one in known.values():
            if one.import_id == before.wanted:
                await record_event(connection, one, "repaired", now=now, detail=detail)
        await settle_into(connection, before, before, known, now=now, moved=list(known))
    return True


async def show_again_one(catalog: Catalog, document_id: str) -> None:
    """Have flag, name and folders of a document carried to the index once more."""
    now = catalog.clock.now()
    async with catalog.write("mend.show", beside=True) as connection:
        await load(connection, [document_id], lock=True)
        await connection.execute(
            update(documents)
            .where(documents.c.id == document_id, documents.c.live_import_id.is_not(None))
            .values(misplaced=True)
        )
        await connection.execute(
            update(imports)
            .where(imports.c.document_id == document_id, imports.c.state == State.SETTLED)
            .values(shown=None, revision=imports.c.revision + 1)
        )
        for document, known in (await load(connection, [document_id])).values():
            settled = [key for key, one in known.items() if one.state is State.SETTLED]
            await settle_into(connection, document, document, known, now=now, moved=settled)


async def add_up(catalog: Catalog, org: str) -> None:
    """Make an organization's counters what its ledger and its reservations add up to."""
    async with catalog.write("mend.counters") as connection:
        row = (
            await connection.execute(
                select(orgs.c.id, orgs.c.period_start).where(orgs.c.name == org)
            )
        ).one_or_none()
        if row is None:
            return
        held = await connection.scalar(
            select(func.sum(reservations.c.pages)).where(
                reservations.c.org_id == row.id, reservations.c.state == "held"
            )
        )
        await connection.execute(
            update(orgs)
            .where(orgs.c.id == row.id)
            .values(
                pages_used=await used_since(connection, row.id, 0),
                period_used=await used_since(connection, row.id, row.period_start or 0),
                pages_held=int(held or 0),
            )
        )


async def chunks_of_job(catalog: Catalog, key: str) -> int | None:
    """Return how many chunks the embedded backend's finished job of a round counted."""
    async with catalog.read() as connection:
        found: int | None = await connection.scalar(
            select(index_jobs.c.chunks).where(
                index_jobs.c.key == key, index_jobs.c.state == IndexJobState.DONE
            )
        )
    return found


async def item_of_document(catalog: Catalog, document_id: str) -> tuple[str, str] | None:
    """Return the drive and the item of a document; None for what no drive has."""
    async with catalog.read() as connection:
        row = (
            await connection.execute(
                select(documents.c.drive_id, documents.c.item_id).where(
                    documents.c.id == document_id
                )
            )
        ).one_or_none()
    return None if row is None or row.drive_id is None else (row.drive_id, row.item_id)


async def documents_in(
    catalog: Catalog, connection_id: str, document_ids: Collection[str]
) -> set[str]:
    """Return those of the documents that a connection has."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(coverage.c.document_id).where(
                coverage.c.connection_id == connection_id,
                coverage.c.document_id.in_(list(document_ids)),
            )
        )
        return {str(key) for key in rows.scalars()}

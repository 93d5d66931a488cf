"""The ledger: every version is charged once for ever, and nothing is ever changed in it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from sqlalchemy import insert, select, update

from drivefeed.catalog.audit_log import record
from drivefeed.catalog.dialect import insert_once
from drivefeed.catalog.engine import now_of
from drivefeed.catalog.quota import balance_of, pages_are_free, settle_pages
from drivefeed.catalog.tables import connections, coverage, documents, imports, orgs
from drivefeed.catalog.usage_tables import ledger
from drivefeed.domain.errors import NeedsAttention, NotFound
from drivefeed.domain.metering import overage_of
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Import

CHARGE: Final = "charge"
CORRECTION: Final = "correction"
OURS: Final = "drivefeed"
BACKENDS: Final = "backend"
"""Who counts usage: we do, or the ingestion backend does and we keep a copy."""


async def charge(
    connection: AsyncConnection, one: Import, *, now: int, usage_owner: str = OURS
) -> None:
    """Charge a settled import, within the commit that settles it, unless it was charged before.

    The counters move only with the inserted row. What the backend counted beyond the held pages is
    marked as overage, where there is a limit.
    """
    pages = one.pages or 0
    balance = await balance_of(connection, one.org_id, locked=True)
    held = await settle_pages(connection, one)
    ours = usage_owner == OURS
    inserted = await insert_once(
        connection,
        ledger,
        {
            "org_id": one.org_id,
            "kind": CHARGE,
            "document_id": one.document_id,
            "import_id": one.import_id,
            "sha256": one.sha256 or f"unknown:{one.import_id}",
            "pages": pages,
            "overage": overage_of(balance, held, pages) if ours else 0,
            "usage_owner": usage_owner,
            "connection_id": await _connection_of(connection, one.document_id),
            "at": now,
        },
    )
    if inserted and ours:
        await _count(connection, one.org_id, pages)
    await connection.execute(
        update(imports).where(imports.c.id == one.import_id).values(settled_at=now)
    )


async def correct(
    catalog: Catalog,
    org_id: str,
    pages: int,
    *,
    reason: str,
    actor: str,
    corrects: int | None = None,
) -> int:
    """Add a correction: so many pages more, or fewer where the number is negative.

    It counts in the period in which it is made.

    Args:
        reason: for whoever reads the statement.
        corrects: the number of the entry that was wrong, if it is about one.

    Returns:
        The number of the new entry.

    Raises:
        NotFound: the org has no such entry.
        NeedsAttention: there is no reason, or nothing to correct, or the entry is a copy.
    """
    if not reason.strip() or pages == 0:
        raise NeedsAttention(
            "A correction needs a reason, and a number of pages that is not 0.",
            reason=Reason.MISCONFIGURED,
        )
    async with catalog.write("correct") as connection:
        await balance_of(connection, org_id, locked=True)
        if corrects is not None:
            await _find_charge(connection, org_id, corrects)
        made = await connection.execute(
            insert(ledger)
            .values(
                org_id=org_id,
                kind=CORRECTION,
                # Document and connection are those of the entry that it corrects.
                pages=pages,
                corrects=corrects,
                reason=reason.strip(),
                actor=actor,
                at=now_of(connection),
            )
            .returning(ledger.c.id)
        )
        number = int(made.scalar_one())
        await _count(connection, org_id, pages)
        await record(
            connection,
            org_id=org_id,
            actor=actor,
            action="usage.corrected",
            subject_id=org_id,
            after={"entry": number, "pages": pages, "corrects": corrects, "reason": reason.strip()},
        )
        pages_are_free(connection, org_id)
    return number


async def _find_charge(connection: AsyncConnection, org_id: str, number: int) -> None:
    owner = await connection.scalar(
        select(ledger.c.usage_owner).where(
            ledger.c.id == number, ledger.c.org_id == org_id, ledger.c.kind == CHARGE
        )
    )
    if owner == BACKENDS:
        raise NeedsAttention(
            f"Entry {number} is a copy from the books of the ingestion backend, and counts nowhere "
            "here. Correct it there.",
            reason=Reason.MISCONFIGURED,
        )
    if owner is None:
        raise NotFound(
            f"There is no charge number {number} in the ledger of this organization; 'drivefeed "
            "usage statement' tells their numbers."
        )


async def _count(connection: AsyncConnection, org_id: str, pages: int) -> None:
    await connection.execute(
        update(orgs)
        .where(orgs.c.id == org_id)
        .values(
            pages_used=orgs.c.pages_used + pages,
            period_used=orgs.c.period_used + pages,
        )
    )


async def _connection_of(connection: AsyncConnection, document_id: str) -> str | None:
    """Return the innermost connection that admits a document, if there is one."""
    rows = (
        await connection.execute(
            select(connections.c.id, connections.c.root_item_id, documents.c.folders)
            .join(coverage, coverage.c.connection_id == connections.c.id)
            .join(documents, documents.c.id == coverage.c.document_id)
            .where(coverage.c.document_id == document_id, coverage.c.admitted)
            .order_by(connections.c.created_at)
        )
    ).all()
    if len(rows) <= 1:
        return rows[0].id if rows else None
    depth = {folder: number for number, folder in enumerate(json.loads(rows[0].folders))}
    return str(max(rows, key=lambda row: depth.get(row.root_item_id, -1)).id)

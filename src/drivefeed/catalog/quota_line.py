"""The line of imports that wait for pages: whoever frees pages lets in who fits, in order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, case, func, literal_column, or_, select, update

from drivefeed.catalog import reminders
from drivefeed.catalog.dialect import batches
from drivefeed.catalog.documents import load_around, record_event, save_import, settle_into
from drivefeed.catalog.engine import now_of
from drivefeed.catalog.imports import note_wait, whole
from drivefeed.catalog.quota import Need, balance_of, hold_pages
from drivefeed.catalog.tables import documents, imports, orgs
from drivefeed.catalog.usage_tables import reservations
from drivefeed.domain.metering import InLine, estimated_pages, let_in
from drivefeed.domain.reasons import Reason
from drivefeed.domain.scope import ending

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.reminders import Claim
    from drivefeed.domain.metering import Balance
    from drivefeed.domain.model import Import

MOST_AT_ONCE: Final = 500
"""So many are let in by one transaction; the scheduler goes on with the rest."""

# SQLite takes a partial index only if a query says the same words.
_IN_LINE = imports.c.hold == literal_column(f"'{Reason.QUOTA}'")


_UNLESS_LOCKED = (
    select(documents.c.id)
    .where(
        documents.c.id
        == select(imports.c.document_id)
        .where(imports.c.id == bindparam("of_import"))
        .scalar_subquery()
    )
    .with_for_update(skip_locked=True)
)


async def hold_or_wait(catalog: Catalog, claim: Claim, one: Import, need: Need) -> bool:
    """Hold pages for the import of a claim, or put it into the line.

    Returns:
        Whether the stage may go on. Otherwise nothing is due for the import until pages are free.
    """
    async with catalog.write("reserve", beside=True) as connection:
        _, known = await whole(connection, one.import_id)
        current = known[one.import_id]
        number = await reminders.number_of(connection, claim.subject_id)
        if (current.state, current.round, number) != (one.state, one.round, claim.number):
            return False
        if await hold_pages(connection, current, need):
            return True
        waiting = replace(current, hold=Reason.QUOTA, revision=current.revision + 1)
        await save_import(connection, waiting)
        await note_wait(connection, waiting)
        await reminders.rest(connection, claim.subject_id)
    return False


async def move_line(connection: AsyncConnection, org_id: str) -> None:
    """Let in who fits, from the head of the line, each with the pages that it needs.

    The organization's row is locked, and whoever is at work on a document may wait for that. So
    nobody is waited for here: the scheduler lets in later what is passed over.
    """
    balance = await balance_of(connection, org_id, locked=True)
    if balance.free == 0:
        return
    line = await _line(connection, org_id, balance)
    now = now_of(connection)
    is_busy = False
    for one, _ in let_in(balance, line):
        if await _is_free(connection, one.import_id):
            await _let_in(connection, one, now=now)
        else:
            is_busy = True
    if is_busy or len(line) == MOST_AT_ONCE:
        await connection.execute(update(orgs).where(orgs.c.id == org_id).values(quota_due_at=now))


async def _line(connection: AsyncConnection, org_id: str, balance: Balance) -> list[InLine]:
    """Return the head of the line, without those whose counted pages do not fit."""
    wanted = func.coalesce(reservations.c.wanted, 0)
    counted = func.coalesce(case((reservations.c.counted, 1), else_=0), 0)
    query = (
        select(
            imports.c.id,
            imports.c.listed_size,
            documents.c.name,
            wanted.label("wanted"),
            counted.label("counted"),
        )
        .join(documents, documents.c.id == imports.c.document_id)
        .outerjoin(
            reservations,
            (reservations.c.import_id == imports.c.id) & (reservations.c.round == imports.c.round),
        )
        .where(imports.c.org_id == org_id, _IN_LINE, imports.c.attention.is_(None))
        .order_by(imports.c.created_at, imports.c.id)
        .limit(MOST_AT_ONCE)
    )
    if balance.free is not None:
        query = query.where(or_(counted == 0, wanted <= balance.free))
    rows = await connection.execute(query)
    return [
        InLine(
            row.id,
            row.wanted or estimated_pages(ending(row.name), row.listed_size),
            exact=bool(row.counted),
        )
        for row in rows
    ]


async def _is_free(connection: AsyncConnection, import_id: str) -> bool:
    """Lock the document of an import, unless somebody is at work on it."""
    found = await connection.execute(_UNLESS_LOCKED, {"of_import": import_id})
    return found.first() is not None


async def _let_in(connection: AsyncConnection, one: InLine, *, now: int) -> None:
    found = await load_around(connection, one.import_id)
    if found is None:
        return
    document, known = found
    old = known[one.import_id]
    if old.hold is not Reason.QUOTA:
        return
    if not await hold_pages(connection, old, Need(one.wanted, counted=one.exact)):
        return
    new = replace(old, hold=None, revision=old.revision + 1)
    known[one.import_id] = new
    await save_import(connection, new)
    await record_event(connection, new, "let_in", now=now, detail="there is room for its pages")
    await settle_into(connection, document, document, known, now=now, moved=[one.import_id])


async def in_line_after(catalog: Catalog, after: str) -> list[str]:
    """Return the next imports in any line, by id, behind the one with the id ``after``."""
    query = (
        select(imports.c.id)
        .where(_IN_LINE, imports.c.id > after)
        .order_by(imports.c.id)
        .limit(MOST_AT_ONCE)
    )
    async with catalog.read() as connection:
        return list((await connection.execute(query)).scalars())


async def count_in_line(connection: AsyncConnection, org_ids: list[str]) -> dict[str, int]:
    """Return how many imports wait for pages, by org; those without any are left out."""
    found: dict[str, int] = {}
    for batch in batches(org_ids):
        rows = await connection.execute(
            select(imports.c.org_id, func.count().label("files"))
            .where(imports.c.org_id.in_(batch), _IN_LINE)
            .group_by(imports.c.org_id)
        )
        found.update({row.org_id: row.files for row in rows})
    return found

"""The recount: counters, reservations, ledger and events of imports compared with each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from sqlalchemy import func, select

from drivefeed.catalog.ledger import CHARGE
from drivefeed.catalog.quota_limits import used_since
from drivefeed.catalog.tables import import_events, imports, orgs
from drivefeed.catalog.usage_tables import ledger, reservations
from drivefeed.domain.lifecycle import ENDED, Event, State
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog

MOST_EXAMPLES: Final = 20
_PAGE: Final = 2_000
_AT_REST: Final = frozenset({*ENDED, State.SETTLED, State.WITHDRAWING})


@dataclass(slots=True)
class Recount:
    """What the books of an organization say when they are added up anew.

    Attributes:
        used, used_in_ledger: all pages ever charged, as the counter says and as entries add up.
        period_used, period_used_in_ledger: the same of the present period.
        held, held_in_reservations: pages held, as the counter says and as reservations add up.
        drift: sentences about what does not agree; empty where the books are right.
        more: further differences that are not told.
    """

    org_id: str
    org: str
    used: int
    used_in_ledger: int
    period_used: int
    period_used_in_ledger: int
    held: int
    held_in_reservations: int
    entries: int = 0
    settlements: int = 0
    drift: list[str] = field(default_factory=list)
    more: int = 0

    @property
    def holds(self) -> bool:
        """Whether everything agrees."""
        return not self.drift

    def note(self, words: str) -> None:
        """Record a difference."""
        if len(self.drift) < MOST_EXAMPLES:
            self.drift.append(words)
        else:
            self.more += 1


async def recount(catalog: Catalog, org_id: str | None = None) -> list[Recount]:
    """Add up the books of all organizations, or of one; nothing is changed.

    Each organization is read in one view of the database, so that work under way is no drift.
    """
    query = select(orgs).order_by(orgs.c.name)
    if org_id is not None:
        query = query.where(orgs.c.id == org_id)
    found = []
    async with catalog.read() as connection:
        rows = (await connection.execute(query)).mappings().all()
        for row in rows:
            one = await _sums(connection, row)
            await _compare_reservations(connection, one)
            await _compare_events(connection, one)
            found.append(one)
    return found


async def _sums(connection: AsyncConnection, row: RowMapping) -> Recount:
    org_id = row["id"]
    held = await connection.scalar(
        select(func.sum(reservations.c.pages)).where(
            reservations.c.org_id == org_id, reservations.c.state == "held"
        )
    )
    one = Recount(
        org_id=org_id,
        org=row["name"],
        used=row["pages_used"],
        used_in_ledger=await used_since(connection, org_id, 0),
        period_used=row["period_used"],
        period_used_in_ledger=await used_since(connection, org_id, row["period_start"] or 0),
        held=row["pages_held"],
        held_in_reservations=int(held or 0),
    )
    for what, counter, added_up in (
        ("used", one.used, one.used_in_ledger),
        ("used in this period", one.period_used, one.period_used_in_ledger),
        ("held", one.held, one.held_in_reservations),
    ):
        if counter != added_up:
            one.note(f"Pages {what}: the counter says {counter}, added up they are {added_up}.")
    return one


async def _compare_reservations(connection: AsyncConnection, one: Recount) -> None:
    """Imports that have ended, or wait in line, hold nothing."""
    rows = await connection.execute(
        select(reservations.c.import_id, reservations.c.pages, imports.c.state, imports.c.hold)
        .join(imports, imports.c.id == reservations.c.import_id)
        .where(reservations.c.org_id == one.org_id, reservations.c.state == "held")
    )
    for row in rows:
        if row.state in _AT_REST or row.hold == Reason.QUOTA:
            one.note(
                f"Import {row.import_id} is {row.state} and at rest, and still holds {row.pages} "
                "pages."
            )


async def _compare_events(connection: AsyncConnection, one: Recount) -> None:
    """Make the charges anew from the events of imports, as far as these are kept."""
    charges = {
        (row.document_id, row.sha256): row
        for row in await connection.execute(
            select(ledger).where(ledger.c.org_id == one.org_id, ledger.c.kind == CHARGE)
        )
    }
    by_import = {row.import_id: row for row in charges.values()}
    one.entries = len(charges)
    seen: set[str] = set()
    async for row in _settlements(connection, one.org_id):
        one.settlements += 1
        sha256 = row["sha256"] or f"unknown:{row['id']}"
        paid = by_import.get(row["id"]) or charges.get((row["document_id"], sha256))
        if paid is None:
            one.note(f"Import {row['id']} was settled, and there is no entry for it.")
            continue
        is_first = paid.import_id == row["id"] and paid.import_id not in seen
        seen.add(paid.import_id)
        if is_first and row["pages"] is not None and row["pages"] != paid.pages:
            one.note(
                f"Entry {paid.id} charges {paid.pages} pages, and import {row['id']} was settled "
                f"with {row['pages']}."
            )
    oldest = await connection.scalar(select(func.min(import_events.c.at)))
    for paid in charges.values():
        if paid.import_id not in seen and oldest is not None and paid.at >= oldest:
            one.note(f"Entry {paid.id} charges import {paid.import_id}, which was never settled.")


async def _settlements(connection: AsyncConnection, org_id: str) -> AsyncIterator[RowMapping]:
    after = 0
    while True:
        rows = (
            (
                await connection.execute(
                    select(
                        import_events.c.id.label("event_id"),
                        import_events.c.pages,
                        imports.c.id,
                        imports.c.document_id,
                        imports.c.sha256,
                    )
                    .join(imports, imports.c.id == import_events.c.import_id)
                    .where(
                        imports.c.org_id == org_id,
                        import_events.c.event == Event.SETTLED,
                        import_events.c.state == State.SETTLED,
                        import_events.c.id > after,
                    )
                    .order_by(import_events.c.id)
                    .limit(_PAGE)
                )
            )
            .mappings()
            .all()
        )
        for row in rows:
            yield row
        if len(rows) < _PAGE:
            return
        after = rows[-1]["event_id"]

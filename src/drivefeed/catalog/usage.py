"""Usage as people read it: how an organization stands, and the statement of its ledger."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from drivefeed.catalog.dialect import batches
from drivefeed.catalog.ledger import BACKENDS, OURS
from drivefeed.catalog.quota_line import count_in_line
from drivefeed.catalog.tables import connections, documents, imports, orgs
from drivefeed.catalog.usage_tables import ledger
from drivefeed.domain.metering import Balance
from drivefeed.domain.periods import Period, end_of
from drivefeed.domain.policy_options import EMBEDDED

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog

_PAGE = 2_000


@dataclass(frozen=True, slots=True)
class Usage:
    """How the pages of an organization stand; times are milliseconds since the epoch.

    Attributes:
        limit: pages that it may use in a period; None where there is no limit.
        used: pages charged in this period, corrections included.
        held: pages that imports under way hold.
        free: pages that are left; None where there is no limit.
        over: pages used beyond the limit, because a backend counted more than could be known.
        files_waiting: files that wait until pages are free.
        resets_at: when the next period begins; None for all time.
        total: pages ever charged.
        copied: pages in the books of ingestion backends that keep them themselves, ever, by the
            backend's name: copies, which count nowhere here.
    """

    org_id: str
    org: str
    limit: int | None
    used: int
    held: int
    free: int | None
    over: int
    files_waiting: int
    period: Period
    time_zone: str
    since: int
    resets_at: int | None
    total: int
    copied: Mapping[str, int] = field(default_factory=dict)

    @property
    def percent(self) -> int | None:
        """The share of the limit that is used; None where there is no limit."""
        if self.limit is None:
            return None
        return 100 * self.used // self.limit if self.limit else 100


async def usage_of(catalog: Catalog, org_id: str | None = None) -> list[Usage]:
    """Return how the pages of all organizations stand, or of one, by name."""
    query = select(orgs).order_by(orgs.c.name)
    if org_id is not None:
        query = query.where(orgs.c.id == org_id)
    async with catalog.read() as connection:
        rows = (await connection.execute(query)).mappings().all()
        ids = [row["id"] for row in rows]
        waiting = await count_in_line(connection, ids)
        copied = await _copied(connection, ids)
    found = []
    for row in rows:
        balance = Balance(row["page_limit"], row["period_used"], row["pages_held"])
        period, since = Period(row["limit_period"]), row["period_start"] or 0
        found.append(
            Usage(
                org_id=row["id"],
                org=row["name"],
                limit=balance.limit,
                used=balance.used,
                held=balance.held,
                free=balance.free,
                over=balance.over,
                files_waiting=waiting.get(row["id"], 0),
                period=period,
                time_zone=row["limit_zone"],
                since=since,
                resets_at=end_of(period, row["limit_zone"], since),
                total=row["pages_used"],
                copied=copied.get(row["id"], {}),
            )
        )
    return found


async def _copied(connection: AsyncConnection, org_ids: list[str]) -> dict[str, dict[str, int]]:
    """Return pages in the books of backends, by organization and name of the backend."""
    found: dict[str, dict[str, int]] = {}
    for batch in batches(org_ids):
        rows = await connection.execute(
            select(
                ledger.c.org_id,
                imports.c.backend,
                func.sum(ledger.c.pages).label("pages"),
            )
            .join(imports, imports.c.id == ledger.c.import_id)
            .where(ledger.c.org_id.in_(batch), ledger.c.usage_owner == BACKENDS)
            .group_by(ledger.c.org_id, imports.c.backend)
            .order_by(imports.c.backend)
        )
        for row in rows:
            found.setdefault(row.org_id, {})[row.backend or EMBEDDED] = int(row.pages)
    return found


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry of the ledger, with the names of today.

    Attributes:
        kind: ``charge`` or ``correction``.
        overage: of the pages, those that were not held while there was a limit.
        usage_owner: ``backend`` where the entry is a copy of the backend's books.
    """

    number: int
    at: int
    org: str
    kind: str
    pages: int
    overage: int
    usage_owner: str
    connection_id: str | None
    connection: str | None
    document_id: str | None
    document: str | None
    import_id: str | None
    sha256: str | None
    corrects: int | None
    reason: str | None
    actor: str | None

    @property
    def counts(self) -> bool:
        """Whether it moved a counter."""
        return self.usage_owner == OURS


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which entries a statement has; ``begin`` counts, ``end`` does not."""

    org_id: str | None = None
    connection_id: str | None = None
    document_id: str | None = None
    begin: int | None = None
    end: int | None = None


async def statement(catalog: Catalog, wanted: Wanted) -> AsyncIterator[Entry]:
    """Yield entries of the ledger in the order in which they were written."""
    after = 0
    while True:
        found = await entries_after(catalog, wanted, after)
        for one in found:
            yield one
        if len(found) < _PAGE:
            return
        after = found[-1].number


async def entries_after(
    catalog: Catalog, wanted: Wanted, after: int, *, limit: int = _PAGE
) -> list[Entry]:
    """Return the next entries behind the one with the number ``after``, which may be 0."""
    async with catalog.read() as connection:
        return await _entries(connection, wanted, after, limit)


async def _entries(
    connection: AsyncConnection, wanted: Wanted, after: int, limit: int
) -> list[Entry]:
    corrected = ledger.alias("corrected")
    document_id = func.coalesce(ledger.c.document_id, corrected.c.document_id)
    connection_id = func.coalesce(ledger.c.connection_id, corrected.c.connection_id)
    rows = await connection.execute(
        select(
            ledger,
            orgs.c.name.label("org"),
            documents.c.name.label("document"),
            connections.c.name.label("connection"),
            document_id.label("about_document"),
            connection_id.label("about_connection"),
        )
        .join(orgs, orgs.c.id == ledger.c.org_id)
        .outerjoin(corrected, corrected.c.id == ledger.c.corrects)
        .outerjoin(documents, documents.c.id == document_id)
        .outerjoin(connections, connections.c.id == connection_id)
        .where(ledger.c.id > after, *_conditions(wanted, document_id, connection_id))
        .order_by(ledger.c.id)
        .limit(limit)
    )
    return [
        Entry(
            number=row["id"],
            at=row["at"],
            org=row["org"],
            kind=row["kind"],
            pages=row["pages"],
            overage=row["overage"],
            usage_owner=row["usage_owner"],
            connection_id=row["about_connection"],
            connection=row["connection"],
            document_id=row["about_document"],
            document=row["document"],
            import_id=row["import_id"],
            sha256=row["sha256"],
            corrects=row["corrects"],
            reason=row["reason"],
            actor=row["actor"],
        )
        for row in rows.mappings()
    ]


def _conditions(
    wanted: Wanted, document_id: ColumnElement[str], connection_id: ColumnElement[str]
) -> list[ColumnElement[bool]]:
    found: list[ColumnElement[bool]] = []
    if wanted.org_id is not None:
        found.append(ledger.c.org_id == wanted.org_id)
    if wanted.connection_id is not None:
        found.append(connection_id == wanted.connection_id)
    if wanted.document_id is not None:
        found.append(document_id == wanted.document_id)
    if wanted.begin is not None:
        found.append(ledger.c.at >= wanted.begin)
    if wanted.end is not None:
        found.append(ledger.c.at < wanted.end)
    return found

"""What the catalog shows of trouble: the facts from which notices are derived."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from drivefeed.catalog.budgets import read_budgets
from drivefeed.catalog.gate import read_gates
from drivefeed.catalog.parts_down import read_down, youngest_start
from drivefeed.catalog.progress import FILES, STANDING, WHY, Standing
from drivefeed.catalog.sources import PACE
from drivefeed.catalog.tables import (
    accounts,
    connections,
    coverage,
    documents,
    drives,
    import_events,
    imports,
    orgs,
)
from drivefeed.domain.lifecycle import Event
from drivefeed.domain.periods import Period

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.parts_down import Down
    from drivefeed.domain.gate import Gate


@dataclass(frozen=True, slots=True)
class AccountFacts:
    """An account: whether it can sign in, and until when.

    Attributes:
        throttled_ms: for how long every request of its app has been refused for being too many.
    """

    account_id: str
    org_id: str
    org: str
    name: str
    state: str
    reason: str | None
    detail: str
    expires_at: int | None
    throttled_ms: int = 0


@dataclass(slots=True)
class ConnectionFacts:
    """A connection, its drive, and where its files stand.

    Attributes:
        interval_ms: how often its drive is asked for changes, on its account.
        counts: files by (standing, reason code or state).
        oldest_waiting_at: when the version was found that has waited longest of those in progress.
        imported_at: when a file of it was last imported.
    """

    connection_id: str
    org_id: str
    org: str
    name: str
    paused: bool
    attention: str | None
    detail: str
    admitting: bool
    created_at: int
    drive_id: str
    drive_name: str
    drive_attention: str | None
    drive_detail: str
    drive_hold: str | None
    enumerating: bool
    interval_ms: int
    last_round_at: int | None
    account_id: str
    counts: dict[tuple[Standing, str], int] = field(default_factory=dict)
    oldest_waiting_at: int | None = None
    imported_at: int | None = None

    def count(self, *standings: Standing) -> int:
        """Return how many files stand there."""
        return sum(count for (standing, _), count in self.counts.items() if standing in standings)


@dataclass(frozen=True, slots=True)
class OrgFacts:
    """An organization and its usage.

    Attributes:
        pages_used: in the present period of its limit.
        page_limit: None where there is none.
        period: of the limit; see :class:`drivefeed.domain.periods.Period`.
    """

    org_id: str
    name: str
    pages_used: int
    page_limit: int | None = None
    period: Period = Period.TOTAL


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything at one moment.

    Attributes:
        gates: what holds downloads, by machine.
        down: what living processes find down, by name.
        youngest_start: when the youngest of them began.
    """

    orgs: list[OrgFacts]
    accounts: list[AccountFacts]
    connections: list[ConnectionFacts]
    gates: dict[str, Gate] = field(default_factory=dict)
    down: dict[str, Down] = field(default_factory=dict)
    youngest_start: int = 0


async def gather_facts(catalog: Catalog) -> Facts:
    """Read accounts, connections and the standing of their files, as of one moment."""
    async with catalog.read() as connection:
        found = await connection.execute(select(orgs).order_by(orgs.c.created_at))
        known_orgs = [
            OrgFacts(
                row["id"],
                row["name"],
                row["period_used"],
                row["page_limit"],
                Period(row["limit_period"]),
            )
            for row in found.mappings()
        ]
        names = {one.org_id: one.name for one in known_orgs}
        throttled = {
            account_id: told.standing.throttled_ms
            for told in await read_budgets(connection, now=catalog.clock.now())
            for account_id in told.accounts
        }
        found = await connection.execute(select(accounts).order_by(accounts.c.created_at))
        known_accounts = [
            AccountFacts(
                account_id=row["id"],
                org_id=row["org_id"],
                org=names[row["org_id"]],
                name=row["name"],
                state=row["state"],
                reason=row["reason"],
                detail=row["detail"] or "",
                expires_at=row["expires_at"],
                throttled_ms=throttled.get(row["id"], 0),
            )
            for row in found.mappings()
        ]
        known = await _connections(connection, names)
        await _count(connection, known)
        now = catalog.clock.now()
        gates = await read_gates(connection, now=now)
        down = await read_down(connection, now=now)
        youngest = await youngest_start(connection, now=now)
    return Facts(known_orgs, known_accounts, list(known.values()), gates, down, youngest)


async def _connections(
    connection: AsyncConnection, names: dict[str, str]
) -> dict[str, ConnectionFacts]:
    rows = await connection.execute(
        select(
            connections,
            drives.c.name.label("drive_name"),
            drives.c.attention.label("drive_attention"),
            drives.c.detail.label("drive_detail"),
            drives.c.hold.label("drive_hold"),
            drives.c.enumerating,
            PACE.label("pace"),
            drives.c.last_round_at,
            drives.c.account_id,
        )
        .join(drives, drives.c.id == connections.c.drive_id)
        .order_by(connections.c.created_at)
    )
    return {
        row["id"]: ConnectionFacts(
            connection_id=row["id"],
            org_id=row["org_id"],
            org=names[row["org_id"]],
            name=row["name"],
            paused=row["paused"],
            attention=row["attention"],
            detail=row["detail"] or "",
            admitting=row["admitting"],
            created_at=row["created_at"],
            drive_id=row["drive_id"],
            drive_name=row["drive_name"],
            drive_attention=row["drive_attention"],
            drive_detail=row["drive_detail"] or "",
            drive_hold=row["drive_hold"],
            enumerating=row["enumerating"],
            interval_ms=row["pace"],
            last_round_at=row["last_round_at"],
            account_id=row["account_id"],
        )
        for row in rows.mappings()
    }


async def _count(connection: AsyncConnection, known: dict[str, ConnectionFacts]) -> None:
    rows = await connection.execute(
        select(
            coverage.c.connection_id,
            STANDING.label("standing"),
            WHY.label("why"),
            func.count().label("files"),
            func.min(imports.c.created_at).label("oldest"),
            func.max(imports.c.settled_at).label("newest"),
        )
        .select_from(FILES)
        .group_by(coverage.c.connection_id, "standing", "why")
    )
    for row in rows:
        one = known[row.connection_id]
        standing = Standing(row.standing)
        one.counts[standing, str(row.why or "unknown")] = row.files
        if row.newest is not None:
            one.imported_at = max(one.imported_at or 0, row.newest)
        if standing in {Standing.IN_PROGRESS, Standing.STALE} and row.oldest is not None:
            one.oldest_waiting_at = min(one.oldest_waiting_at or row.oldest, row.oldest)


async def waiting_since(catalog: Catalog, connection_ids: Collection[str]) -> dict[str, int]:
    """Return when the file was admitted that has waited longest, by connection.

    An import that was admitted again counts from then; asked only of connections whose oldest
    import is old, because it looks at events.
    """
    admitted = (
        select(func.max(import_events.c.at))
        .where(
            import_events.c.import_id == imports.c.id,
            import_events.c.event.in_([Event.WANTED_AGAIN, "retry", "resumed"]),
        )
        .scalar_subquery()
    )
    waiting = (
        select(
            coverage.c.connection_id,
            func.min(func.coalesce(admitted, imports.c.created_at)).label("since"),
        )
        .select_from(coverage)
        .join(documents, documents.c.id == coverage.c.document_id)
        .join(imports, imports.c.id == documents.c.wanted_import_id)
        .where(
            coverage.c.connection_id.in_(connection_ids),
            STANDING.in_([Standing.IN_PROGRESS, Standing.STALE]),
        )
        .group_by(coverage.c.connection_id)
    )
    async with catalog.read() as connection:
        rows = await connection.execute(waiting)
        return {row.connection_id: row.since for row in rows}

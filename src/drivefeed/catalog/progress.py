"""Where the files of each connection stand, counted so that the parts add up to the whole."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from sqlalchemy import and_, case, func, literal, or_, select

from drivefeed.catalog.receipts import DISCONNECTED
from drivefeed.catalog.sources import connection_of
from drivefeed.catalog.tables import (
    connections,
    coverage,
    documents,
    drives,
    facts,
    import_events,
    imports,
)
from drivefeed.domain.lifecycle import Event, State

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection


class Standing(StrEnum):
    """Where a file stands. Every file of a connection stands in exactly one place."""

    SEARCHABLE = "searchable"
    IN_PROGRESS = "in_progress"
    STALE = "stale"
    HELD = "held"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(slots=True)
class Progress:
    """The standing of one connection's files.

    Attributes:
        counts: files by standing.
        reasons: files by (standing, reason code or stage); why they stand there.
        listed: whether the drive's first enumeration is complete, so that ``found`` is final.
        listed_at: when its latest round was complete; what changed since then is not counted yet.
        planned: how many files its plan counted; None where it was connected without a plan.
        seconds_left: how long the rest takes at the pace of the last minutes; None where too little
            came to an end to tell.
    """

    connection: Connection
    drive_name: str
    listed: bool
    listed_at: int | None
    drive_hold: str | None
    drive_attention: str | None
    detail: str | None
    counts: dict[Standing, int] = field(default_factory=lambda: dict.fromkeys(Standing, 0))
    reasons: dict[tuple[Standing, str], int] = field(default_factory=dict)
    bytes_done: int = 0
    pages: int = 0
    planned: int | None = None
    seconds_left: float | None = None

    @property
    def admitted(self) -> int:
        """Files that are not skipped."""
        return self.found - self.counts[Standing.SKIPPED]

    @property
    def since(self) -> int:
        """Files that came on top of the planned ones."""
        return 0 if self.planned is None else max(0, self.admitted - self.planned)

    @property
    def waiting(self) -> int:
        """Files that have not come to an end, with those that are planned and not scanned yet."""
        unseen = 0
        if self.planned is not None and not self.listed:
            unseen = max(0, self.planned - self.admitted)
        return unseen + self.counts[Standing.IN_PROGRESS] + self.counts[Standing.STALE]

    @property
    def found(self) -> int:
        """All files of the connection."""
        return sum(self.counts.values())

    @property
    def at_rest(self) -> bool:
        """Whether nothing moves any more: everything found has come to an end."""
        waits = self.counts[Standing.IN_PROGRESS] + self.counts[Standing.STALE]
        return self.listed and waits == 0

    @property
    def waits_for_person(self) -> bool:
        """Whether the connection or its drive waits for somebody; files may wait besides."""
        return bool(self.connection.attention or self.drive_attention)

    @property
    def percent(self) -> int:
        """Files that came to an end, of those planned and those that came since.

        What is held goes on by itself later, so it did not.

        Planned files that were removed in the meantime came to an end. Without a plan, all files
        found are counted, which are the more the further the listing is.
        """
        held = self.counts[Standing.HELD]
        if self.planned is not None:
            whole = self.planned + self.since
            return 100 * (whole - self.waiting - held) // whole if whole else 100
        moving = self.counts[Standing.IN_PROGRESS] + self.counts[Standing.STALE]
        done = self.found - moving - held
        if not self.found:
            return 100 if self.listed else 0
        return 100 * done // self.found


_is_live = and_(
    documents.c.live_import_id == imports.c.id, documents.c.live_round == imports.c.round
)
_waits_for_person = imports.c.attention.is_not(None)
TRANSFERS_HELD = "hold:transfer"
"""The fact whose value is why nothing may begin to be downloaded; there is none where it may."""
WHY_HELD = select(facts.c.value).where(facts.c.name == TRANSFERS_HELD)
# Said once for all of them: a backlog is not written to when it holds.
_is_held = or_(
    imports.c.hold.is_not(None),
    and_(imports.c.state == State.DISCOVERED.value, WHY_HELD.exists()),
)
STANDING = case(
    (coverage.c.admitted.is_(False), literal(Standing.SKIPPED.value)),
    (
        and_(imports.c.state == State.SETTLED.value, _is_live),
        literal(Standing.SEARCHABLE.value),
    ),
    (imports.c.state == State.REJECTED.value, literal(Standing.FAILED.value)),
    (_waits_for_person, literal(Standing.FAILED.value)),
    (_is_held, literal(Standing.HELD.value)),
    (documents.c.live_import_id.is_not(None), literal(Standing.STALE.value)),
    else_=literal(Standing.IN_PROGRESS.value),
)
WHY = case(
    (coverage.c.admitted.is_(False), coverage.c.reason),
    (imports.c.state == State.REJECTED.value, imports.c.reason),
    (_waits_for_person, imports.c.attention),
    (_is_held, func.coalesce(imports.c.hold, WHY_HELD.scalar_subquery())),
    else_=imports.c.state,
)
FILES = coverage.outerjoin(documents, documents.c.id == coverage.c.document_id).outerjoin(
    imports, imports.c.id == documents.c.wanted_import_id
)


_PACE_MS = 10 * 60_000
_YOUNGEST = 2_000
_LEAST_ENDS = 3
"""Fewer ends tell no pace."""


async def progress_of(
    catalog: Catalog, *, org_id: str | None = None, connection_id: str | None = None
) -> list[Progress]:
    """Count the standing of every connection's files, or of those of an org, or of one."""
    now = catalog.clock.now()
    async with catalog.read() as connection:
        found = await _connections(connection, org_id, connection_id)
        paces = await _paces(connection, now)
        where = []
        if org_id is not None or connection_id is not None:
            where.append(coverage.c.connection_id.in_(list(found)))
        rows = await connection.execute(
            select(
                coverage.c.connection_id,
                STANDING.label("standing"),
                WHY.label("why"),
                func.count().label("files"),
                func.sum(imports.c.size).label("bytes"),
                func.sum(imports.c.pages).label("pages"),
            )
            .select_from(FILES)
            .where(*where)
            .group_by(coverage.c.connection_id, "standing", "why")
        )
        for row in rows:
            one = found[row.connection_id]
            standing = Standing(row.standing)
            one.counts[standing] += row.files
            key = (standing, str(row.why or "unknown"))
            one.reasons[key] = one.reasons.get(key, 0) + row.files
            if standing is Standing.SEARCHABLE:
                # Postgres adds up BIGINT as NUMERIC.
                one.bytes_done += int(row.bytes or 0)
                one.pages += row.pages or 0
    for one in found.values():
        pace = paces.get(one.connection.connection_id)
        one.seconds_left = one.waiting / pace if pace else None
    return list(found.values())


async def _paces(connection: AsyncConnection, now: int) -> dict[str, float]:
    """Return how many files a second each connection brought to their end in the last minutes.

    It looks at the youngest events alone: with many files that is quicker than to look at each.
    """
    youngest = await connection.scalar(select(func.max(import_events.c.id))) or 0
    rows = await connection.execute(
        select(
            coverage.c.connection_id,
            func.count().label("ends"),
            func.min(import_events.c.at).label("first"),
        )
        .select_from(import_events)
        .join(imports, imports.c.id == import_events.c.import_id)
        .join(coverage, coverage.c.document_id == imports.c.document_id)
        .where(
            import_events.c.id > youngest - _YOUNGEST,
            import_events.c.event == Event.SETTLED,
            import_events.c.at > now - _PACE_MS,
        )
        .group_by(coverage.c.connection_id)
    )
    return {
        row.connection_id: (row.ends - 1) * 1000 / (now - row.first)
        for row in rows
        if row.ends >= _LEAST_ENDS and now > row.first
    }


async def being_withdrawn(catalog: Catalog) -> int:
    """Count versions whose object and points are on their way out."""
    async with catalog.read() as connection:
        count = await connection.scalar(
            select(func.count())
            .select_from(imports)
            .where(imports.c.state == State.WITHDRAWING, imports.c.attention.is_(None))
        )
    return count or 0


async def _connections(
    connection: AsyncConnection, org_id: str | None, connection_id: str | None
) -> dict[str, Progress]:
    where = []
    if org_id is not None:
        where.append(connections.c.org_id == org_id)
    if connection_id is not None:
        where.append(connections.c.id == connection_id)
    rows = await connection.execute(
        select(
            connections,
            DISCONNECTED.label("disconnected"),
            drives.c.name.label("drive_name"),
            drives.c.last_round_at,
            drives.c.hold.label("drive_hold"),
            drives.c.attention.label("drive_attention"),
            drives.c.detail.label("drive_detail"),
        )
        .join(drives, drives.c.id == connections.c.drive_id)
        .where(*where)
        .order_by(connections.c.created_at)
    )
    return {
        row["id"]: Progress(
            connection=connection_of(row),
            drive_name=row["drive_name"],
            listed=row["last_round_at"] is not None and not row["admitting"],
            listed_at=row["last_round_at"],
            drive_hold=row["drive_hold"],
            drive_attention=row["drive_attention"],
            detail=row["detail"] or row["drive_detail"],
            planned=json.loads(row["plan"])["files"] if row["plan"] else None,
        )
        for row in rows.mappings()
    }

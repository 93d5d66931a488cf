"""What happened lately to the files of an org, from the youngest events alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, case, func, select

from drivefeed.catalog.tables import coverage, import_events, imports
from drivefeed.domain.lifecycle import Event

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog

_YOUNGEST: Final = 2_000
"""So many events are looked at, of however many there are."""
_WINDOW_MS: Final = 60_000
_LEAST_FILES: Final = 3
"""Fewer ended files tell no time to come."""
_LEAST_MS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Lately:
    """What happened to the files of one connection.

    Attributes:
        latest: the number of its youngest event; it rises whenever something happens.
        ended: files that came to an end within the last minute.
        span_ms: since the first of them.
    """

    latest: int
    ended: int
    span_ms: int

    @property
    def files_a_second(self) -> float | None:
        """How fast files come to an end; None where too few did."""
        if self.ended < _LEAST_FILES or self.span_ms < _LEAST_MS:
            return None
        return self.ended * 1000 / self.span_ms


async def youngest_event(catalog: Catalog) -> int:
    """Return the number of the youngest event of any import; 0 before the first."""
    async with catalog.read() as connection:
        return await connection.scalar(select(func.max(import_events.c.id))) or 0


async def lately(catalog: Catalog, org_id: str) -> dict[str, Lately]:
    """Return, by connection, what happened to files of an org; quiet ones are left out."""
    now = catalog.clock.now()
    ending = and_(
        import_events.c.event.in_([Event.SETTLED, Event.REFUSED]),
        import_events.c.at >= now - _WINDOW_MS,
    )
    async with catalog.read() as connection:
        youngest = await connection.scalar(select(func.max(import_events.c.id))) or 0
        rows = await connection.execute(
            select(
                coverage.c.connection_id,
                func.max(import_events.c.id).label("latest"),
                func.sum(case((ending, 1), else_=0)).label("ended"),
                func.min(case((ending, import_events.c.at), else_=now)).label("since"),
            )
            .select_from(import_events)
            .join(imports, imports.c.id == import_events.c.import_id)
            .join(coverage, coverage.c.document_id == imports.c.document_id)
            .where(import_events.c.id > youngest - _YOUNGEST, imports.c.org_id == org_id)
            .group_by(coverage.c.connection_id)
        )
        return {
            row.connection_id: Lately(row.latest, row.ended, max(0, now - row.since))
            for row in rows
        }

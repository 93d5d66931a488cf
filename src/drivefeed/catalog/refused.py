"""Files that Microsoft listed and refused to hand out; who may read one changes without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlalchemy import func, select

from drivefeed.catalog.subscriptions import FLOWS
from drivefeed.catalog.tables import documents, drives, import_events, imports
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog


async def refused_before(catalog: Catalog, before: int, *, most: int) -> list[str]:
    """Return wanted imports that were refused last before a time (ms), the oldest imports first.

    Those of drives of which nothing flows are left out: they would only wait.
    """
    # Of old ones the event may be pruned by now.
    refused_at = (
        select(func.max(import_events.c.at))
        .where(
            import_events.c.import_id == imports.c.id,
            import_events.c.event == Event.REFUSED,
        )
        .scalar_subquery()
    )
    asked = (
        select(imports.c.id)
        .join(documents, documents.c.wanted_import_id == imports.c.id)
        .join(drives, drives.c.id == documents.c.drive_id)
        .where(
            imports.c.state == State.REJECTED,
            imports.c.reason == Reason.DOWNLOAD_FORBIDDEN,
            func.coalesce(refused_at, imports.c.created_at) <= before,
            FLOWS,
        )
        .order_by(imports.c.created_at, imports.c.id)
        .limit(most)
    )
    async with catalog.read() as connection:
        return [str(key) for key in (await connection.execute(asked)).scalars()]

"""What is kept for how long and what must not fill up, made from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.notices import DAY_MS
from drivefeed.services.retention import Ages, Retention

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.settings import Settings


def retention_of(settings: Settings, catalog: Catalog, owner: str) -> Retention:
    """Return what prunes the catalog by age."""
    wanted = settings.retention

    def age(days: float) -> int:
        return int(days * DAY_MS)

    ages = Ages(
        events=age(wanted.events_days),
        ends=age(wanted.ends_days),
        index_jobs=age(wanted.index_jobs_days),
        notices=age(wanted.notices_days),
        sessions=age(wanted.sessions_days),
        heartbeats=age(wanted.heartbeats_days),
    )
    return Retention(catalog, ages, owner=owner)

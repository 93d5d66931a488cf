"""What is kept for how long and what must not fill up, made from the settings."""

from __future__ import annotations

import socket
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from drivefeed.bootstrap import STORE_FOLDER
from drivefeed.domain.budget import Lane
from drivefeed.domain.gate import MIB, BacklogMarks, Marks
from drivefeed.domain.notices import DAY_MS
from drivefeed.embedding import INDEX_FOLDER
from drivefeed.services.books import LOOK_SECONDS as BOOKS_SECONDS
from drivefeed.services.books import let_in_who_need_not_wait
from drivefeed.services.budgets import LOOK_SECONDS as BUDGET_SECONDS
from drivefeed.services.budgets import BudgetBoard
from drivefeed.services.erasing import TICK_SECONDS as ERASING_SECONDS
from drivefeed.services.erasing import Erasures
from drivefeed.services.gate import Gatekeeper, Place
from drivefeed.services.reconcile import TICK_SECONDS as RECONCILE_SECONDS
from drivefeed.services.reconcile import Reconcile
from drivefeed.services.recovery import TICK_SECONDS as RECOVERY_SECONDS
from drivefeed.services.recovery import Recovery
from drivefeed.services.retention import TICK_SECONDS as RETENTION_SECONDS
from drivefeed.services.retention import Ages, Retention
from drivefeed.services.second_try import TICK_SECONDS as SECOND_TRY_SECONDS
from drivefeed.services.second_try import SecondTry
from drivefeed.services.subscriptions import TICK_SECONDS as SUBSCRIPTION_SECONDS
from drivefeed.services.subscriptions import Subscribing

if TYPE_CHECKING:
    from drivefeed.bootstrap import Parts
    from drivefeed.catalog.engine import Catalog
    from drivefeed.ports import Queue
    from drivefeed.services.schedule import Schedule
    from drivefeed.settings import Settings

RECONCILE_FOLDER = "reconcile"
"""Below the data folder: the scratch files of listings under way."""


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


def places_of(settings: Settings) -> list[Place]:
    """Return the folders of this machine whose disks must not fill up, the most telling first."""
    wanted, data = settings.disk, settings.data_dir
    marks = Marks(wanted.low_mb * MIB, wanted.high_mb * MIB)
    temporary = Marks(wanted.temp_low_mb * MIB, wanted.temp_high_mb * MIB)
    found = [Place("data folder", data, marks)]
    if settings.s3 is None:
        found.append(Place("object store", data / STORE_FOLDER, marks))
    if not settings.qdrant_url:
        found.append(Place("vector index", data / INDEX_FOLDER, marks))
    return [*found, Place("temporary folder", Path(tempfile.gettempdir()), temporary)]


def gatekeeper_of(settings: Settings, catalog: Catalog) -> Gatekeeper:
    """Return what says which downloads may begin."""
    wanted = settings.backlog
    marks = BacklogMarks(wanted.files, wanted.mb * MIB, wanted.resume_percent)
    return Gatekeeper(catalog, places_of(settings), marks, host=socket.gethostname())


def subscribing_of(parts: Parts, owner: str) -> Subscribing:
    """Return what keeps Microsoft telling us of changes, or ends what there is of that."""
    # It brings an HTTP client, which a start does not wait for.
    from drivefeed.sources.graph.subscriptions import GraphSubscriptions

    told = parts.settings.notifications
    return Subscribing(
        parts.catalog,
        GraphSubscriptions(parts.source),
        url=told.url.rstrip("/"),
        lifetime_ms=round(told.lifetime_hours * 3_600_000),
        owner=owner,
        silence_ms=round(told.silence_seconds * 1000),
    )


def reconcile_of(parts: Parts, owner: str) -> Reconcile:
    """Return what lists drives in full now and then."""
    settings = parts.settings
    return Reconcile(
        parts.catalog,
        parts.source.at(Lane.VERIFY),
        settings.data_dir / RECONCILE_FOLDER,
        every_ms=int(settings.reconcile.every_hours * 3600 * 1000),
        owner=owner,
    )


def watch_budgets(schedule: Schedule, parts: Parts, *, tells: bool) -> None:
    """Have it told on a schedule how the budgets at Microsoft stand.

    Args:
        tells: whether this process writes it to the catalog.
    """
    board = BudgetBoard(parts.catalog, parts.source.gates, parts.accounts, tells=tells)
    schedule.every(BUDGET_SECONDS, "budgets", board.tick)


async def keep_house(schedule: Schedule, parts: Parts, queue: Queue, *, owner: str) -> None:
    """Have recovery, retention, subscriptions, second tries, erasures and reconcile run on time.

    To be called before anybody works: after a restore, the queue is emptied first.
    """
    recovery = Recovery(
        parts.catalog, parts.store, parts.index, queue, owner=owner, backends=parts.backends
    )
    await recovery.begin()
    if parts.backends.keep_books:
        look = partial(let_in_who_need_not_wait, parts.catalog, parts.backends.usage_owner)
        schedule.every(BOOKS_SECONDS, "books", look)
    retention = retention_of(parts.settings, parts.catalog, owner)
    schedule.every(RECOVERY_SECONDS, "recovery", recovery.tick)
    schedule.every(RETENTION_SECONDS, "retention", retention.tick)
    schedule.revisit_ms = round(parts.settings.notifications.revisit_seconds * 1000)
    subscribing = subscribing_of(parts, owner)
    schedule.every(SUBSCRIPTION_SECONDS, "subscriptions", subscribing.tick)
    schedule.every(SECOND_TRY_SECONDS, "second try", SecondTry(parts.catalog, owner).tick)
    schedule.every(ERASING_SECONDS, "erasing", Erasures(parts.catalog, owner=owner).tick)
    if parts.settings.reconcile.every_hours:
        reconcile = reconcile_of(parts, owner)
        schedule.every(RECONCILE_SECONDS, "reconcile", reconcile.tick)

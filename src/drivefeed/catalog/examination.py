"""The catalog as a doctor sees it: looked at without being changed, not even migrated."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from sqlalchemy import MetaData, create_engine, func, inspect, select, text
from sqlalchemy.exc import DBAPIError

from drivefeed.catalog import access_tables, subscription_tables, tables
from drivefeed.catalog.access_tables import credentials
from drivefeed.catalog.columns import metadata
from drivefeed.catalog.engine import is_postgres, newest_migration
from drivefeed.catalog.tables import accounts as accounts_table
from drivefeed.catalog.tables import (
    connections,
    documents,
    drives,
    import_events,
    imports,
    index_jobs,
    items,
    orgs,
    reminders,
)
from drivefeed.domain.errors import NeedsAttention
from drivefeed.secrets.ring import Sealed

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from sqlalchemy import Connection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.ports import Clock
    from drivefeed.secrets.ring import KeyRing

CHECK_SECONDS = 8.0
"""How long SQLite may read its own file to find damage; a large one is read in part."""
_STEPS_BETWEEN_LOOKS = 20_000


class Integrity(StrEnum):
    """What SQLite's quick check came to."""

    GOOD = "good"
    DAMAGED = "damaged"
    NOT_FINISHED = "not_finished"
    NOT_ASKED = "not_asked"


@dataclass(frozen=True, slots=True)
class CatalogState:
    """What was found of the database.

    Attributes:
        trouble: why it cannot be read, in the database's words; empty where it can.
        exists: whether anybody made it yet.
        migration: the newest migration that was run; empty for none.
        newest: the newest one that this version knows.
        journal: SQLite's journal mode; empty for other databases.
        server: the database's name and version; empty for SQLite.
        integrity: what the quick check came to.
        clock_ahead_ms: how far the clock of a server is ahead of this machine's.
    """

    trouble: str = ""
    exists: bool = True
    migration: str = ""
    newest: str = ""
    journal: str = ""
    server: str = ""
    integrity: Integrity = Integrity.NOT_ASKED
    clock_ahead_ms: int = 0

    @property
    def is_current(self) -> bool:
        """Whether this version of drivefeed can work with it as it is."""
        return not self.trouble and self.exists and self.migration == self.newest


def look(url: str, clock: Clock, *, seconds: float = CHECK_SECONDS) -> CatalogState:
    """Read what state the database is in; blocks, so call it in a thread.

    Args:
        clock: is compared with that of a server.
        seconds: how long the check for damage may take.
    """
    newest = newest_migration()
    if is_postgres(url):
        from drivefeed.catalog.server import ask

        server = ask(url, clock)
        return CatalogState(
            trouble=server.trouble,
            exists=bool(server.migration or server.trouble),
            migration=server.migration,
            newest=newest,
            server=server.version,
            clock_ahead_ms=server.ahead_ms,
        )
    path = url.removeprefix("sqlite:///")
    if path != url and not Path(path).exists():
        return CatalogState(exists=False, newest=newest)
    # SQLite makes a file that is not there, unless it is asked for one to read and write
    engine = create_engine(f"sqlite:///file:{quote(path)}?mode=rw&uri=true" if path != url else url)
    try:
        with engine.connect() as connection:
            is_sqlite = engine.dialect.name == "sqlite"
            if not inspect(connection).has_table("alembic_version"):
                return CatalogState(exists=False, newest=newest)
            version = connection.execute(text("SELECT version_num FROM alembic_version"))
            return CatalogState(
                migration=str(version.scalars().first() or ""),
                newest=newest,
                journal=_journal(connection) if is_sqlite else "",
                integrity=_integrity(connection, seconds) if is_sqlite else Integrity.NOT_ASKED,
            )
    except DBAPIError as error:
        return CatalogState(trouble=str(error.orig), newest=newest)
    finally:
        engine.dispose()


def _journal(connection: Connection) -> str:
    return str(connection.execute(text("PRAGMA journal_mode")).scalar_one())


def _integrity(connection: Connection, seconds: float) -> Integrity:
    deadline = time.monotonic() + seconds
    driver: sqlite3.Connection | None = connection.connection.driver_connection
    assert driver is not None
    driver.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS_BETWEEN_LOOKS)
    try:
        with closing(driver.execute("PRAGMA quick_check(1)")) as rows:
            return Integrity.GOOD if rows.fetchone() == ("ok",) else Integrity.DAMAGED
    except driver.OperationalError as error:
        if "interrupted" not in str(error):
            raise
        return Integrity.NOT_FINISHED
    finally:
        driver.set_progress_handler(None, 0)


async def answers(catalog: Catalog) -> None:
    """Ask the database for nothing.

    Raises:
        PartDown: it does not answer.
    """
    async with catalog.read() as connection:
        await connection.execute(text("SELECT 1"))


async def table_counts(catalog: Catalog) -> dict[str, int]:
    """Return the number of rows of every table, by its name."""
    every: MetaData = metadata
    async with catalog.read() as connection:
        return {
            table.name: int(await connection.scalar(select(func.count()).select_from(table)) or 0)
            for table in every.sorted_tables
        }


async def counts_by_state(catalog: Catalog) -> dict[str, dict[str, int]]:
    """Count imports by state and reason, and what waits by stage; codes and numbers only."""
    why = func.coalesce(imports.c.attention, imports.c.hold, imports.c.reason, "")
    async with catalog.read() as connection:
        by_state = await connection.execute(
            select(imports.c.state, why, func.count()).group_by(imports.c.state, why)
        )
        jobs = await connection.execute(
            select(index_jobs.c.state, func.count()).group_by(index_jobs.c.state)
        )
        stages = await connection.execute(
            select(reminders.c.stage, func.count())
            .where(reminders.c.due_at.is_not(None))
            .group_by(reminders.c.stage)
        )
        states = await connection.execute(
            select(accounts_table.c.state, func.count()).group_by(accounts_table.c.state)
        )
        return {
            "imports": {f"{state} {code}".rstrip(): count for state, code, count in by_state},
            "index_jobs": _counted(jobs),
            "reminders": _counted(stages),
            "accounts": _counted(states),
        }


def _counted(rows: Iterable[Any]) -> dict[str, int]:
    return {str(name): int(count) for name, count in rows}


async def unopened(catalog: Catalog, ring: KeyRing) -> dict[str, str]:
    """Open every credential and forget it; return why, by account name, where one stays shut.

    Raises:
        NeedsAttention: the keys themselves cannot be read.
    """
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(
                credentials.c.id, credentials.c.sealed, credentials.c.key_id, accounts_table.c.name
            )
            .join(accounts_table, accounts_table.c.id == credentials.c.account_id)
            .order_by(accounts_table.c.name)
        )
        found = list(rows.mappings())
    shut: dict[str, str] = {}
    for row in found:
        sealed = Sealed(row["sealed"], row["key_id"])
        try:
            await asyncio.to_thread(ring.unseal, sealed, row_id=str(row["id"]))
        except NeedsAttention as error:
            shut[str(row["name"])] = str(error)
    return shut


async def has_sent(catalog: Catalog) -> bool:
    """Whether deliveries are out: sent to the queue, and not known to be done."""
    async with catalog.read() as connection:
        found = await connection.scalar(
            select(reminders.c.subject_id).where(reminders.c.sent_at.is_not(None)).limit(1)
        )
    return found is not None


async def oldest_waiting(catalog: Catalog, *, now: int) -> dict[str, tuple[int, int]]:
    """Return, by stage, how many reminders are due and not done, and since when the oldest is.

    Paused and held work has no due time and does not count.
    """
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(reminders.c.stage, func.count(), func.min(reminders.c.due_at))
            .where(reminders.c.due_at <= now)
            .group_by(reminders.c.stage)
        )
        return {stage: (count, oldest) for stage, count, oldest in rows}


async def known_names(catalog: Catalog) -> dict[str, set[str]]:
    """Return every name of a customer's that the catalog knows, by what it names.

    So that they can be left out of what goes to others.
    """
    columns = {
        "org": (orgs.c.name,),
        "account": (accounts_table.c.name,),
        "tenant": (accounts_table.c.tenant_id,),
        "app": (accounts_table.c.client_id,),
        "person": (accounts_table.c.user_name, accounts_table.c.user_id),
        "drive": (drives.c.name, drives.c.remote_id, drives.c.drive_key, drives.c.root_item_id),
        "connection": (connections.c.name, connections.c.root_item_id),
        "file": (items.c.name, items.c.item_id, documents.c.name),
    }
    found: dict[str, set[str]] = {}
    async with catalog.read() as connection:
        for kind, named in columns.items():
            values: set[str] = set()
            for column in named:
                rows = await connection.execute(select(column).distinct())
                values |= {str(one) for one in rows.scalars() if one}
            found[kind] = values
    return found


async def newest_failures(catalog: Catalog, *, limit: int) -> list[dict[str, str | int]]:
    """Return what was last written down of imports that went wrong; no ids of files or names."""
    columns = import_events.c
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(columns.at, columns.event, columns.state, columns.reason, columns.detail)
            .where(columns.reason.is_not(None))
            .order_by(columns.id.desc())
            .limit(limit)
        )
        return [dict(row) for row in rows.mappings()]


_EVERY_TABLE = (
    access_tables,
    subscription_tables,
    tables,
)  # their import registers them with `metadata`

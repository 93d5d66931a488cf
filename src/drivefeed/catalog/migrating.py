"""Migrations: run at every start, by one process at a time, and never backwards."""

from __future__ import annotations

import asyncio
import re
from importlib.resources import files
from typing import TYPE_CHECKING

from sqlalchemy import inspect, text

from drivefeed.catalog import sqlite
from drivefeed.catalog.database import is_postgres
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from sqlalchemy import Connection


def migrate(url: str, *, to: str = "head") -> None:
    """Run all migrations that the database has not seen; safe to call at every start.

    Blocks, so call it in a thread. One process migrates (Postgres has an advisory lock for it,
    SQLite the lock of its writer) while others that start wait and find it done.

    Args:
        to: the last one to run, for tests of what an older version left behind.

    Raises:
        NeedsAttention: a newer drivefeed migrated it further than this one knows, or the URL
            cannot be used.
        PartDown: the database does not answer, or refuses us.
    """
    if is_postgres(url):
        from drivefeed.catalog.postgres import alone_to_migrate

        asyncio.run(alone_to_migrate(url, is_current, lambda connection: _migrate(connection, to)))
        return
    sqlite.alone_to_migrate(url, is_current, lambda connection: _migrate(connection, to))


def _migrate(connection: Connection, to: str) -> None:
    if is_current(connection):
        return
    # Alembic takes longer to load than most commands take to answer.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "drivefeed:catalog/migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def is_current(connection: Connection) -> bool:
    """Whether the newest migration was run; their files begin with their revisions, in order.

    Raises:
        NeedsAttention: a newer one was run, by a newer drivefeed.
    """
    found = ran(connection)
    newest = newest_migration()
    if found > newest:
        raise NeedsAttention(newer_words(found, newest), reason=Reason.MISCONFIGURED)
    return found == newest


def ran(connection: Connection) -> str:
    """Return the newest migration that was run; empty for none."""
    if not inspect(connection).has_table("alembic_version"):
        return ""
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalars()
    return max(found, default="")


def newer_words(found: str, newest: str) -> str:
    """Return the sentence for a catalog that a newer drivefeed has migrated."""
    return (
        f"The catalog was migrated to {found} by a newer drivefeed, and this one knows migrations "
        f"up to {newest}. Update drivefeed here; the catalog stays as it is."
    )


def newest_migration() -> str:
    """Return the revision of the newest migration that this version knows."""
    names = [one.name for one in files("drivefeed.catalog.migrations.versions").iterdir()]
    return max(name[:4] for name in names if re.match(r"\d{4}_", name))

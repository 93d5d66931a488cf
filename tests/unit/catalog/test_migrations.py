"""The migrations make exactly the tables that the code reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text

from drivefeed.catalog.engine import migrate, sqlite_url
from drivefeed.catalog.tables import metadata

if TYPE_CHECKING:
    from pathlib import Path


def _differences(url: str) -> list[object]:
    engine = create_engine(url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        found = list(compare_metadata(context, metadata))
    engine.dispose()
    return found


def _schema(url: str) -> list[tuple[str, list[str]]]:
    """Every table and index as SQLite keeps it: defaults, constraints and all, line by line."""
    engine = create_engine(url)
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        )
        found = [
            (name, sorted(line.strip().rstrip(",") for line in sql.splitlines()))
            for name, sql in rows
            if name != "alembic_version"
        ]
    engine.dispose()
    return found


def test_migrations_make_exactly_the_tables_of_the_metadata(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "migrated.db")
    migrate(url)
    assert _differences(url) == []


def test_constraints_and_partial_indexes_are_the_same_line_by_line(tmp_path: Path) -> None:
    migrated = sqlite_url(tmp_path / "migrated.db")
    migrate(migrated)
    created = sqlite_url(tmp_path / "created.db")
    engine = create_engine(created)
    metadata.create_all(engine)
    engine.dispose()
    assert _schema(migrated) == _schema(created)


def test_migrating_twice_changes_nothing(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "twice.db")
    migrate(url)
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO facts (name, value) VALUES ('kept', 'yes')"))
    before = _schema(url)
    migrate(url)
    with engine.begin() as connection:
        assert connection.execute(text("SELECT value FROM facts")).scalar_one() == "yes"
    engine.dispose()
    assert _schema(url) == before


def test_there_is_one_line_of_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", "drivefeed:catalog/migrations")
    assert len(ScriptDirectory.from_config(config).get_heads()) == 1

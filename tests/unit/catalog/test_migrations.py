"""The migrations make exactly the tables that the code reads and writes."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import TYPE_CHECKING

from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text

from drivefeed.catalog import (  # noqa: F401 (they fill the metadata)
    access_tables,
    index_tables,
    subscription_tables,
    tables,
    usage_tables,
)
from drivefeed.catalog.columns import metadata
from drivefeed.catalog.engine import migrate, sqlite_url

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
    """Every table and index as SQLite keeps it: defaults, constraints and all, part by part."""
    engine = create_engine(url)
    with engine.connect() as connection:
        rows = connection.execute(
            text("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name")
        )
        found = [(name, sorted(_parts(sql))) for name, sql in rows if name != "alembic_version"]
    engine.dispose()
    return found


def _parts(sql: str) -> list[str]:
    """Split a statement at the commas between its columns and constraints.

    SQLite writes a column that was added later behind the constraints, on the same line.
    """
    head, _, body = sql.partition("(")
    found, depth = [""], 0
    for sign in body.rpartition(")")[0]:
        depth += {"(": 1, ")": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return [" ".join(part.split()) for part in [head, *found]]


def test_migrations_make_exactly_the_tables_of_the_metadata(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "migrated.db")
    migrate(url)
    assert _differences(url) == []


def test_constraints_and_partial_indexes_are_the_same_part_by_part(tmp_path: Path) -> None:
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


def test_an_older_catalog_keeps_its_rows(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "old.db")
    migrate(url, to="0001")
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("INSERT INTO orgs (id, name, created_at) VALUES ('o', 'Org', 1)"))
        connection.execute(
            text("INSERT INTO accounts (id, org_id, name, created_at) VALUES ('a', 'o', 'A', 1)")
        )
    migrate(url)
    with engine.begin() as connection:
        row = connection.execute(text("SELECT state, sign_in, cloud, revision FROM accounts")).one()
    engine.dispose()
    assert tuple(row) == ("ok", None, "global", 1)


def test_collections_that_were_facts_are_carried_over(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "old.db")
    migrate(url, to="0003")
    made = {"name": "index-2", "provider": "local", "model": "m", "dimension": 3}
    fact = {
        "active": made,
        "building": made | {"name": "index-3", "model": "n"},
        "old": ["index"],
        "number": 3,
        "leave_out": True,
    }
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(
            text("INSERT INTO facts (name, value) VALUES ('index:embedded', :value)"),
            {"value": json.dumps(fact)},
        )
    migrate(url)
    with engine.begin() as connection:
        rows = connection.execute(
            text(
                "SELECT index_name, org_id, name, state, model, number, leave_out "
                "FROM collections ORDER BY name"
            )
        )
        found = [tuple(row) for row in rows]
        left = connection.execute(text("SELECT count(*) FROM facts WHERE name LIKE 'index:%'"))
        assert left.scalar_one() == 0
    engine.dispose()
    assert found == [
        ("embedded", "", "index", "old", "m", 1, 0),
        ("embedded", "", "index-2", "active", "m", 2, 0),
        ("embedded", "", "index-3", "building", "n", 3, 1),
    ]


def test_there_is_one_line_of_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", "drivefeed:catalog/migrations")
    assert len(ScriptDirectory.from_config(config).get_heads()) == 1


def test_several_that_start_at_once_on_a_new_file_migrate_it_once(tmp_path: Path) -> None:
    for number in range(5):
        url = sqlite_url(tmp_path / f"{number}.sqlite")
        together = Barrier(4)

        def start(url: str = url, together: Barrier = together) -> None:
            together.wait()
            migrate(url)

        with ThreadPoolExecutor(4) as starters:
            for one in [starters.submit(start) for _ in range(4)]:
                one.result()
        assert _differences(url) == []

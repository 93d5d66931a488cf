"""Databases for tests of the catalog: each such test runs on SQLite and on Postgres.

The conftest of all tests makes the fixture available. The migrations run once in a process of
tests; a test gets a copy of what they made, which takes less than a millisecond. That they run over
an empty file, and over one of an older version, is what the tests of the migrations are for.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

DATABASES = ("sqlite", "postgres")


@pytest.fixture(params=DATABASES)
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a migrated and empty database for one test."""
    if request.param == "sqlite":
        return new_catalog(tmp_path / "catalog.db")
    url: str = request.getfixturevalue("postgres_url")
    return url


def new_catalog(file: Path) -> str:
    """Make a SQLite file in which the migrations were run and nothing else was; return its URL."""
    with file.open("xb") as empty:
        empty.write(_migrated())
    return f"sqlite:///{file}"


@cache
def _migrated() -> bytes:
    """Run the migrations over an empty file, and return what it holds then."""
    from drivefeed.catalog.engine import migrate

    with TemporaryDirectory(prefix="drivefeed-migrated-") as folder:
        file = Path(folder, "catalog.db")
        migrate(f"sqlite:///{file}")
        # As a catalog leaves it that was open once.
        with closing(sqlite3.connect(file)) as catalog:
            catalog.execute("PRAGMA journal_mode=WAL")
        return file.read_bytes()

"""Databases for tests of the catalog: each such test runs on SQLite and on Postgres.

``from support.catalogs import catalog_url`` in a test module or a conftest, together with
``postgres_server`` of :mod:`support.postgres`, makes the fixture available there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog.engine import sqlite_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATABASES = ("sqlite", "postgres")


@pytest.fixture(params=DATABASES)
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database for one test: a new file, or a migrated Postgres database."""
    if request.param == "sqlite":
        yield sqlite_url(tmp_path / "catalog.db")
        return
    server = request.getfixturevalue("postgres_server")
    url = server.new_database()
    yield url
    server.drop(url)

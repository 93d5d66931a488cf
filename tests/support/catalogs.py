"""Databases for tests of the catalog: each such test runs on SQLite and on Postgres.

The conftest of all tests makes the fixture available.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

DATABASES = ("sqlite", "postgres")


@pytest.fixture(params=DATABASES)
def catalog_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database for one test: a new file, or a migrated and empty Postgres database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'catalog.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url

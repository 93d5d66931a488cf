"""The same with catalogs in Postgres: killed at every checkpoint there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from durability.book import NAMES, PLACES, Book, told_with_its_place
from durability.town import running_town

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.postgres import PostgresServer


@pytest.fixture(scope="module")
def book(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: PostgresServer,
    request: pytest.FixtureRequest,
) -> Iterator[Book]:
    home = tmp_path_factory.mktemp("town")
    with running_town(home, drives=len(PLACES) + 1, postgres=postgres_server) as town:
        made = Book(town)
        yield made
        made.tell(request.config)


@pytest.mark.soak
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("name", NAMES, ids=told_with_its_place)
def test_killed_here_nothing_is_lost_and_nothing_happens_twice(book: Book, name: str) -> None:
    book.assert_killed_at(name)

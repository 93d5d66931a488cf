"""Killed at every checkpoint there is, and each time everything is there once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from durability.book import NAMES, PLACES, Book, told_with_its_place
from durability.town import running_town

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def book(
    tmp_path_factory: pytest.TempPathFactory,
    request: pytest.FixtureRequest,
) -> Iterator[Book]:
    home = tmp_path_factory.mktemp("town")
    with running_town(home, drives=len(PLACES) + 1) as town:
        made = Book(town)
        yield made
        made.tell(request.config)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", NAMES, ids=told_with_its_place)
def test_killed_here_nothing_is_lost_and_nothing_happens_twice(book: Book, name: str) -> None:
    book.assert_killed_at(name)

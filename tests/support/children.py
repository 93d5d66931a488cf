"""Child processes of one test, apart from servers that serve the whole session."""

from __future__ import annotations

import psutil
import pytest

_before: set[int] = set()


@pytest.fixture(autouse=True)
def servers_of_the_session() -> None:
    """Remember which children there are before the test; import this where children count."""
    _before.clear()
    _before.update(child.pid for child in psutil.Process().children())


def new_children() -> list[psutil.Process]:
    """Return this process' children that were started since the test began."""
    return [child for child in psutil.Process().children() if child.pid not in _before]

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from graphsim.exchange import Exchange
from quirks.stand import Docs, Stand, simulator, standing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from graphsim.serving import GraphSim


@pytest.fixture
async def sim() -> AsyncIterator[GraphSim]:
    async with simulator(page_size=5) as running:
        yield running


@pytest.fixture
async def stand(sim: GraphSim, tmp_path: Path) -> AsyncIterator[Stand]:
    """A drive that nothing is connected of yet."""
    async with standing(sim, tmp_path) as made:
        yield made


@pytest.fixture
async def docs(stand: Stand) -> Docs:
    """``docs`` with ``a.txt`` and ``sub/b.txt``, connected and synced, beside ``other``."""
    return await Docs.make(stand)


@pytest.fixture
def retell(monkeypatch: pytest.MonkeyPatch) -> list[Callable[[dict[str, Any]], dict[str, Any]]]:
    """What changes the pages of delta on their way, in turns; a test appends to it."""
    changes: list[Callable[[dict[str, Any]], dict[str, Any]]] = []
    original = Exchange.json

    async def json(self: Exchange, status: int, content: Any, *args: Any, **options: Any) -> None:
        if changes and self.asked.op == "delta" and status == 200:
            # Some items are written already when a page is put together.
            content = msgspec.json.decode(msgspec.json.encode(content))
            for change in changes:
                content = change(content)
        await original(self, status, content, *args, **options)

    monkeypatch.setattr(Exchange, "json", json)
    return changes

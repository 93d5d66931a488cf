from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from graphsim.serving import GraphSim, serve
from integration.delegated.kit import Person
from integration.graph_source.kit import sim_state

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def sim() -> AsyncIterator[GraphSim]:
    async with serve(state=sim_state()) as running:
        yield running


@pytest.fixture
async def person(sim: GraphSim) -> AsyncIterator[Person]:
    somebody = Person(sim)
    async with somebody.browser:
        yield somebody

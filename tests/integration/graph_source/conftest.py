"""A simulator and a source over it, for the tests that need no more of either."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from graphsim.serving import serve
from integration.graph_source.kit import HurriedClock, account_of, sim_state, source_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.sources.graph import GraphSource
    from graphsim.serving import GraphSim


@pytest.fixture
def sim_options() -> dict[str, Any]:
    """How the simulator differs from its usual self; a module may have its own."""
    return {}


@pytest.fixture
async def sim(sim_options: dict[str, Any]) -> AsyncIterator[GraphSim]:
    async with serve(state=sim_state(), **sim_options) as running:
        yield running


@pytest.fixture
def clock() -> HurriedClock:
    return HurriedClock()


@pytest.fixture
async def source(sim: GraphSim, clock: HurriedClock) -> AsyncIterator[GraphSource]:
    made = source_of(account_of(sim), clock)
    yield made
    await made.aclose()

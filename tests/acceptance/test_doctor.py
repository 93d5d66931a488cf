"""Row 7: each of the doctor's checks broken in turn, and cured by the remedy it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from acceptance.installation import WITHOUT_DAEMON, Installation, ill, installed
from integration.graph_source.kit import sim_state
from support.threaded_sim import threaded_sim
from support.valkey import ValkeyServer, valkey_server, valkey_url

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from graphsim.serving import GraphSim

__all__ = ["valkey_server", "valkey_url"]


@pytest.fixture(scope="module")
def sim() -> Iterator[GraphSim]:
    with threaded_sim(state=sim_state()) as running:
        yield running


@pytest.fixture(scope="module")
def master(
    tmp_path_factory: pytest.TempPathFactory, sim: GraphSim, valkey_server: ValkeyServer
) -> Iterator[Installation]:
    with installed(tmp_path_factory.mktemp("installed"), sim, valkey_server.url) as made:
        yield made


@pytest.fixture
def here(master: Installation, tmp_path: Path, valkey_url: str) -> Installation:
    """A copy of the installation that a test may break."""
    return master.copied_to(tmp_path / "copy")


def test_what_is_well_is_green(here: Installation) -> None:
    found = here.doctor()
    assert ill(found).keys() == WITHOUT_DAEMON
    for one in found:
        print(one)

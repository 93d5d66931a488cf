"""Two drivefeeds with data folders of their own are pointed at one Postgres."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from drivefeed.bootstrap import FOLDER_IDENTITY
from support.daemon import drivefeed
from support.postgres_daemon import PostgresDaemon
from support.sim import Sim

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_a_second_one_is_refused_and_so_is_a_restore(tmp_path: Path, postgres_url: str) -> None:
    (tmp_path / "OneDrive").mkdir()
    sim = Sim(tmp_path / "OneDrive", tmp_path / "graphsim")
    sim.start()
    homes = [tmp_path / name for name in ("one", "two")]
    for home in homes:
        home.mkdir()
    one, two = (PostgresDaemon(home, sim, postgres_url) for home in homes)
    try:
        one.start()
        for words in (("up",), ("restore", "--done"), ("verify",), ("reindex", "--anew")):
            refused = drivefeed("--data", str(two.data), *words, cwd=two.home, ok=range(1, 9))
            said = " ".join((refused.stdout + refused.stderr).split())
            assert "works on this database already" in said, said
            assert "Traceback" not in said
        one.kill()
        one.start()
        one.stop()
        two.start()
        two.stop()
    finally:
        one.end()
        two.end()
        sim.stop()
    identities = {(each.data / FOLDER_IDENTITY).read_text() for each in (one, two)}
    assert len(identities) == 2

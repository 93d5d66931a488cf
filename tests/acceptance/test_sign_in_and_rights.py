"""A secret that runs out, a grant that is taken away, a site that is locked; and each cure.

Nothing is downloaded a second time: the position in the drive survives all three.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from drivefeed.domain.explanations import EXPLANATIONS
from support.daemon import Daemon
from support.processes import until
from support.sim import Sim

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILES = 4
_NEW_SECRET = "another secret"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "OneDrive"
    made.mkdir()
    for number in range(FILES):
        (made / f"File {number}.txt").write_text(f"Paper {number} is about bridge {number + 7}.\n")
    return made


@pytest.fixture
def daemon(tmp_path: Path, folder: Path) -> Iterator[Daemon]:
    sim = Sim(folder, tmp_path / "graphsim")
    sim.start()
    made = Daemon(tmp_path, sim)
    try:
        yield made
        made.stop()
    finally:
        made.end()
        sim.stop()


def _status(daemon: Daemon) -> dict[str, Any]:
    (one,) = daemon.json("status")
    found: dict[str, Any] = one
    return found


def _waits_for(daemon: Daemon, reason: str) -> None:
    """See that the drive waits for this reason, and that people are told what to do."""
    until(
        lambda: _status(daemon)["attention"] == reason,
        seconds=60,
        what=lambda: _told(daemon),
        pause=0.5,
    )
    words, told = EXPLANATIONS[reason], _told(daemon)  # type: ignore[index]
    assert words.meaning in told
    assert words.remedy in told
    assert _status(daemon)["searchable"] == FILES


def _goes_on(daemon: Daemon) -> None:
    """Look again at once, rather than within five minutes, and see the drive calm."""
    daemon.command("resume")
    until(
        lambda: _status(daemon)["attention"] is None,
        seconds=60,
        what=lambda: _told(daemon),
        pause=0.5,
    )


def _told(daemon: Daemon) -> str:
    return " ".join(daemon.command("status").split())


def test_each_cure_resumes_without_importing_anything_again(daemon: Daemon, folder: Path) -> None:
    sim = daemon.sim
    drive, site = sim.endpoints["drive_id"], quote(sim.endpoints["site_id"], safe="")
    app = f"/apps/{sim.endpoints['client_id']}"
    daemon.start()
    daemon.wait_for_rest(files=FILES)
    before, points = sim.mark(), daemon.points()

    sim.change("PATCH", f"/drives/{drive}/quirks", {"locked": True})
    _waits_for(daemon, "site_locked")
    sim.change("PATCH", f"/drives/{drive}/quirks", {"locked": False})
    _goes_on(daemon)

    sim.change("PATCH", app, {"roles": ["Sites.Selected"]})
    sim.change("POST", "/tokens/revoke")
    _waits_for(daemon, "grant_missing")
    (probed,) = daemon.json("probe", ok=(1,))
    assert (probed["has"], probed["granted"]) == (["Sites.Selected"], False)
    assert "The grant of the site" in probed["missing"][0]
    assert "Missing: The grant of" in daemon.command("probe", "test", ok=(1,))
    sim.change("POST", f"/sites/{site}/grants", {"client_id": sim.endpoints["client_id"]})
    _goes_on(daemon)

    sim.change("PATCH", app, {"secrets": [{"value": sim.endpoints["client_secret"], "expires": 1}]})
    sim.change("POST", "/tokens/revoke")
    asked = sim.mark()
    _waits_for(daemon, "secret_expired")
    assert len(sim.requests(since=asked, op="token")) <= 2
    daemon.stop()
    settings = daemon.data / "drivefeed.toml"
    line = f'client_secret = "{_NEW_SECRET}"'
    settings.write_text(re.sub(r"client_secret = .*", line, settings.read_text()))
    sim.change("PATCH", app, {"secrets": [{"value": _NEW_SECRET}]})
    daemon.start()
    _goes_on(daemon)

    assert [one for one in sim.downloads(since=before) if not one["range"]] == []
    assert daemon.points() == points
    since = sim.mark()
    (folder / "New.txt").write_text("The new paper is about a ferry.\n")
    daemon.wait_for_rest(files=FILES + 1)
    assert {one["name"] for one in sim.downloads(since=since)} == {"New.txt"}
    assert not [one for one in sim.requests(since=before, op="delta") if "token=" not in one["url"]]
    assert daemon.json("verify")["holds"]
    assert "✓ The content of a file may be read." in daemon.command("probe", "--drive", drive)

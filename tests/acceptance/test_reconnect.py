"""A person's sign-in ends; after the next one everything goes on from where it was."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from support.daemon import Daemon, drivefeed
from support.processes import until
from support.signing import sign_in
from support.sim import Sim

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow
FILES = 4


class PersonalDaemon(Daemon):
    """A daemon that reads through an account of its catalog."""

    def _write_settings(self, poll: float, grace: float, more: str, connection: str) -> None:
        del grace, more, connection
        lines = [
            f"poll_seconds = {poll}",
            f"poll_slowest_seconds = {poll}",
            "log_json = true",
            "ru_per_minute = 1000000",
            "[[connections]]",
            'account = "mine"',
            f"drive_id = {json.dumps(self.sim.endpoints['drive_id'])}",
            'name = "OneDrive"',
        ]
        (self.data / "drivefeed.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def account(self) -> dict[str, Any]:
        (found,) = self.json("account", "list")
        assert isinstance(found, dict)
        return found


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[PersonalDaemon]:
    folder = tmp_path / "OneDrive"
    folder.mkdir()
    for number in range(FILES):
        (folder / f"note {number}.txt").write_text(f"The note of number {number} is short.\n")
    sim = Sim(folder, tmp_path / "graphsim")
    sim.start()
    made = PersonalDaemon(tmp_path, sim)
    try:
        yield made
    finally:
        made.end()
        sim.stop()


def test_work_goes_on_after_a_new_sign_in(daemon: PersonalDaemon) -> None:
    ends = daemon.sim.endpoints
    home, place = daemon.home, ("--data", str(daemon.data))
    drivefeed(*place, "init", cwd=home)
    daemon.start()
    # The daemon runs already; it finds the account without a new start.
    sign_in(
        *(*place, "account", "add", "mine", "--tenant", ends["tenant_id"]),
        *("--client-id", ends["client_id"], "--authority", ends["login_url"]),
        *("--graph-url", ends["graph_url"], "--ca-file", ends["ca_file"]),
        cwd=home,
        ca_file=ends["ca_file"],
    )
    daemon.wait_for_rest(files=FILES)
    assert len(daemon.ledger()) == FILES
    (before,) = daemon.rows("SELECT cursor, generation FROM drives")

    httpx.post(f"{ends['admin_url']}/tokens/revoke", params={"refresh": 1}).raise_for_status()
    until(
        lambda: (
            daemon.account()["state"] == "needs_sign_in"
            and daemon.rows("SELECT 1 FROM drives WHERE attention NOT NULL")
        ),
        seconds=60,
        what=daemon.last_words,
        pause=0.5,
    )
    (drive,) = daemon.rows("SELECT cursor, generation, attention FROM drives")
    assert drive == {**before, "attention": "needs_sign_in"}
    assert "AADSTS50173" in daemon.account()["detail"]
    mark = daemon.sim.mark()
    (daemon.sim.folder / "later.txt").write_text("This came while nobody was signed in.\n")

    sign_in(*place, "account", "reconnect", "mine", cwd=home, ca_file=ends["ca_file"])
    daemon.wait_for_rest(files=FILES + 1)
    assert daemon.account()["state"] == "ok"
    (drive,) = daemon.rows("SELECT generation, attention FROM drives")
    assert drive == {"generation": before["generation"], "attention": None}
    read = {one["name"] for one in daemon.sim.downloads(since=mark) if one["status"] == 200}
    assert read == {"later.txt"}
    assert len(daemon.ledger()) == FILES + 1
    daemon.stop()

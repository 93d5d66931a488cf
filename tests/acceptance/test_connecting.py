"""From an account in the settings to a searchable document, while the daemon runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from acceptance.village import PATIENCE_SECONDS, TEXTS, write
from support.daemon import Daemon
from support.processes import until
from support.sim import Sim

if TYPE_CHECKING:
    from pathlib import Path

    from acceptance.conftest import Figure


class Unconnected(Daemon):
    """A daemon whose settings have an account and no folder."""

    def _write_settings(self, poll: float, grace: float, more: str, connection: str) -> None:
        super()._write_settings(poll, grace, more, connection)
        path = self.data / "drivefeed.toml"
        path.write_text(path.read_text(encoding="utf-8").split("[[connections]]")[0])


def test_a_folder_connected_on_the_command_line_flows_without_a_restart(
    tmp_path: Path, figure: Figure
) -> None:
    folder = tmp_path / "OneDrive"
    for path, text in TEXTS.items():
        write(folder, path, text)
    sim = Sim(folder, tmp_path / "graphsim")
    daemon: Unconnected | None = None
    try:
        sim.start()
        daemon = Unconnected(tmp_path, sim)
        assert [path.name for path in daemon.data.iterdir()] == ["drivefeed.toml"]
        daemon.start()
        began = time.monotonic()
        process = daemon.process
        assert daemon.search("russet apples") == []

        listed = daemon.json("browse", "test", "--user", sim.endpoints["user_name"])
        (orchard,) = [one for one in listed["entries"] if one["name"] == "Orchard"]
        answer = daemon.json("connect", f" {orchard['url']}?web=1 ", "--apply")
        wanted = [path for path in TEXTS if path.startswith("Orchard/")]
        assert answer["plan"]["files"] == len(wanted)
        assert answer["understood"]["item_id"] == orchard["id"]
        assert answer["understood"]["path"] == "Orchard"

        until(
            lambda: daemon.search("russet apples"),
            seconds=PATIENCE_SECONDS,
            what=daemon.last_words,
        )
        figure("from the first command to the first searchable document", _seconds(began))
        daemon.wait_for_rest(files=len(wanted))
        assert daemon.process is process
        assert {one["path"] for one in daemon.json("imports")} == {
            path.removeprefix("Orchard/") for path in wanted
        }
        ledger = daemon.ledger()
        again = daemon.json("connect", orchard["url"], "--apply")
        assert again["connection_id"] == answer["connection_id"]
        assert again["changes"] == []

        # What changes from now on follows as well.
        write(folder, "Orchard/Medlars.txt", "Medlars are eaten only after the first frost.")
        until(
            lambda: (
                [one["path"] for one in daemon.search("medlars after frost")][:1] == ["Medlars.txt"]
            ),
            seconds=PATIENCE_SECONDS,
            what=daemon.last_words,
        )
        assert len(daemon.ledger()) == len(ledger) + 1
        daemon.stop()
    finally:
        if daemon is not None:
            daemon.end()
        sim.stop()


def _seconds(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"

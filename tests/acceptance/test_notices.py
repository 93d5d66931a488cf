"""A running daemon tells somebody when it needs them, and again when it does not any more."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support.daemon import Daemon, running
from support.processes import until
from support.receiver import running_receiver

if TYPE_CHECKING:
    from pathlib import Path

    from support.receiver import Receiver

SETTINGS = """
watch = {{ look_seconds = 1 }}
notices = [{{ name = "desk", kind = "webhook", url = "{url}", digest_minutes = 0 }}]
"""


def told(server: Receiver) -> list[dict[str, Any]]:
    return [one for posted in server.received for one in json.loads(posted.body)["notices"]]


def delivered(daemon: Daemon) -> bool:
    """Whether the latest answer of the receiver was recorded as well."""
    past = daemon.json("notices")["past"]
    return [each["detail"] for one in past for each in one["deliveries"]] == ["200 ok", "200 ok"]


def test_the_brake_is_told_and_that_it_is_over(tmp_path: Path) -> None:
    folder = tmp_path / "OneDrive"
    folder.mkdir()
    for name in ("one", "two", "three"):
        (folder / f"{name}.txt").write_text(f"The text of {name}.\n")
    with (
        running_receiver() as server,
        running(
            tmp_path,
            folder,
            settings=SETTINGS.format(url=server.url),
            connection="brake_floor = 1",
        ) as daemon,
    ):
        daemon.wait_for_rest(files=3)
        assert told(server) == []
        (folder / "one.txt").unlink()
        until(lambda: told(server), seconds=60, what=daemon.last_words)
        (one,) = told(server)
        assert (one["happening"], one["kind"]) == ("opened", "removals")
        assert (one["subject"], one["org"]) == ("connection 'OneDrive'", "test")
        assert one["command"] == "drivefeed removals OneDrive"
        daemon.command("removals", "OneDrive", "--approve")
        until(lambda: len(told(server)) > 1, seconds=60, what=daemon.last_words)
        assert [each["happening"] for each in told(server)] == ["opened", "over"]
        until(lambda: delivered(daemon), seconds=30, what=daemon.last_words)
        assert daemon.json("notices")["open"] == []

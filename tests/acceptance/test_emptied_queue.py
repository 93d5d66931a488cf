"""The queue only reminds: emptied in the middle of the work, it costs time and nothing else."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
import redis

from support.daemon import Daemon, running
from support.evidence import files_below, sha256
from support.processes import until

if TYPE_CHECKING:
    from pathlib import Path

    from acceptance.conftest import Figure

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

FEW, MANY = 80, 2000


def queue_of(daemon: Daemon) -> redis.Redis:
    """Open the daemon's Valkey, as the board would."""
    exports = dict(
        line.removeprefix("export ").split("=", 1)
        for line in daemon.command("board-env").splitlines()
    )
    return redis.Redis.from_url(shlex.split(exports["DRIVEFEED_REDIS_URL"])[0])


@pytest.mark.parametrize(
    ("files", "times"), [(FEW, 1), pytest.param(MANY, 3, marks=pytest.mark.soak)]
)
def test_all_files_come_to_rest_once_though_the_queue_is_emptied(
    tmp_path: Path, figure: Figure, files: int, times: int
) -> None:
    folder = tmp_path / "Notes"
    folder.mkdir()
    for number in range(files):
        text = f"Note {number}: the keeper of lamp {number} writes down the oil and the wicks."
        (folder / f"note {number:03}.txt").write_text(text, encoding="utf-8")
    with running(tmp_path, folder) as daemon, queue_of(daemon) as queue:
        for time_ in range(1, times + 1):
            part = files * time_ // (2 * times + 2)
            until(
                lambda part=part: len(daemon.ledger()) > part,
                seconds=600,
                what=f"{part} of the files",
            )
            assert len(daemon.ledger()) < files * 3 // 4, "the middle was missed"
            _empty(daemon, queue, figure)
        emptied = time.monotonic()
        daemon.wait_for_rest(files=files, seconds=1200)
        figure(
            f"queue emptied {times} times in the middle of {files} files: all at rest after",
            f"{time.monotonic() - emptied:.1f} s",
        )
        check_each_file_is_there_once(daemon, folder, files)
        certificate = daemon.json("verify")
        assert certificate["holds"], certificate


def _empty(daemon: Daemon, queue: redis.Redis, figure: Figure) -> None:
    """Empty the queue, and see that work goes on."""
    keys = queue.dbsize()
    queue.flushall()
    emptied = time.monotonic()
    settled = len(daemon.ledger())
    until(lambda: len(daemon.ledger()) > settled + 10, seconds=60, what="work to go on")
    took = time.monotonic() - emptied
    figure(f"queue emptied of {keys} keys: work goes on after", f"{took:.1f} s")


def check_each_file_is_there_once(daemon: Daemon, folder: Path, files: int) -> None:
    on_disk = sorted(sha256(path) for path in files_below(folder).values())
    assert len(set(on_disk)) == files
    ledger = daemon.ledger()
    assert sorted(one.sha256 for one in ledger) == on_disk
    assert daemon.rows("SELECT pages_used FROM orgs") == [
        {"pages_used": sum(one.pages for one in ledger)}
    ]
    assert sorted(sha256(path) for path in daemon.objects().values()) == on_disk
    assert daemon.points() == {(one.import_id, 1): (True, 1) for one in ledger}
    events = daemon.rows("SELECT import_id, event FROM import_events")
    told = Counter((one["import_id"], one["event"]) for one in events)
    assert all(told[one.import_id, "settled"] == 1 for one in ledger)
    hits = daemon.search("keeper of lamp 77", limit=3)
    assert hits[0]["path"] == "note 077.txt"

"""A daemon on a small disk that fills up and gets room again; run by test_full_disk.py.

It mounts a small disk for itself alone, so it runs in mount name space of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from support.daemon import Daemon
from support.evidence import files_below, sha256
from support.processes import until
from support.sim import Sim

DISK_MIB = 400
FILES = 12
SECONDS_WITHOUT_ROOM = 25.0
LEFT, LOW, HIGH = 100, 130, 140
"""MiB."""


def main(home: Path) -> None:
    served, disk = home / "OneDrive", home / "data"
    served.mkdir()
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(disk)]
    subprocess.run(mount, check=True)
    write(served, 0)
    sim = Sim(served, home / "graphsim")
    sim.start()
    # A little above what the index needs, for it is a small disk.
    daemon = Daemon(home, sim, grace=1.0, settings=f"disk = {{low_mb = {LOW}, high_mb = {HIGH}}}")
    try:
        run(daemon, served, disk / "filler")
    finally:
        daemon.end()
        sim.stop()


def write(served: Path, batch: int) -> None:
    for number in range(FILES):
        words = f"Batch {batch}, file {number}: the well is {number * 13 + batch} metres deep. "
        # Not compressible for a disk, but few words for the model.
        ballast = f"<!-- {os.urandom(60_000).hex()} -->"
        (served / f"batch {batch} file {number}.html").write_text(f"<p>{words}</p>{ballast}")


def run(daemon: Daemon, served: Path, filler: Path) -> None:
    daemon.start()
    daemon.wait_for_rest(files=FILES)
    held = dict(daemon.objects())
    leave(filler, LEFT)
    try:
        holds_before_it_is_full(daemon, served, held)
        fill(filler)
        told = until(lambda: is_told(daemon, filler), seconds=60, what=daemon.last_words)
        print(told)  # noqa: T201 - the sentence is the point
        # It goes on like this for a while: nothing is given up, and nothing is half-written.
        deadline = time.monotonic() + SECONDS_WITHOUT_ROOM
        while time.monotonic() < deadline:
            assert daemon.process is not None
            assert daemon.process.poll() is None, daemon.last_words()
            fill(filler)
            time.sleep(1)
        assert daemon.search("the well is 13 metres deep")
        assert all(path.is_file() for path in held.values())
    finally:
        filler.unlink()
    daemon.wait_for_rest(files=2 * FILES, seconds=150)
    on_disk = {sha256(path) for path in files_below(served).values()}
    assert {sha256(path) for path in daemon.objects().values()} == on_disk
    live = daemon.rows("SELECT count(*) AS files FROM documents WHERE live_import_id NOT NULL")
    assert live == [{"files": 2 * FILES}], daemon.json("imports")
    assert len(daemon.ledger()) == len(daemon.points()) == 2 * FILES
    assert not list((daemon.data / "objects" / ".partial").iterdir())
    assert daemon.json("verify")["holds"]
    daemon.stop()


def leave(filler: Path, mib: int) -> None:
    """Take the room that is left, but for so many MiB."""
    with filler.open("ab", buffering=0) as file:
        while shutil.disk_usage(filler.parent).free > mib << 20:
            file.write(bytes(1 << 20))


def holds_before_it_is_full(daemon: Daemon, served: Path, held: dict[str, Path]) -> None:
    """Nothing new is begun, nobody is asked, and everybody who looks is told."""

    def is_shown() -> bool:
        return "downloads go on at 140.0 MiB" in daemon.command("status")

    def holds() -> bool:
        standing = daemon.json("status")[0]
        return bool(standing["held"] == FILES and standing["searchable"] == FILES)

    until(is_shown, seconds=60, what=lambda: daemon.command("status"))
    write(served, 1)
    until(holds, seconds=60, what=lambda: daemon.json("status"))
    (standing,) = daemon.json("status")
    assert "waiting_for_disk" in {one["reason"] for one in standing["reasons"]}
    assert set(daemon.objects()) == set(held)
    found = [one for one in daemon.json("doctor", ok=(1,)) if one["part"] == "downloads"]
    assert [one["colour"] for one in found] == ["red"], found


def fill(filler: Path) -> None:
    """Take all the room that is left."""
    with filler.open("ab", buffering=0) as file:
        for size in (1 << 20, 4096):
            while True:
                try:
                    file.write(bytes(size))
                except OSError:
                    break


def is_told(daemon: Daemon, filler: Path) -> str:
    fill(filler)
    for one in daemon.log():
        words = " ".join(str(one.get(key, "")) for key in ("error", "words", "detail"))
        if "room" in words or "Free space" in words or "Free some space" in words:
            return words
    return ""


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    print("done")  # noqa: T201 - read by the test

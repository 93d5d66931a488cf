"""Killed in every stage, again and again: every file arrives once, and is charged once.

The daemon is stopped in the middle of a stage, which the catalog shows by a claim; then all its
processes are killed, and it is started again. graphsim goes on. What came of it is compared from
outside: files, objects, points, requests, ledger. Where it dies is a matter of luck here; at every
checkpoint, it does in ``tests/durability``.
"""

from __future__ import annotations

import hashlib
import json
import signal
import sqlite3
import time
from collections import Counter
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

import docx
import psutil
import pytest

from support.daemon import Daemon
from support.evidence import files_below, sha256
from support.processes import tree, until
from support.sim import Sim

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

FILES = {1: 120, 2: 140}
"""At the start, by how often it is killed in each stage."""
LATE_FILES = 12
"""Added before a stage is hunted again: a quick machine has done with all others by then."""
DOCX = 6
GRACE_SECONDS = 3.0
RESUMES_WITHIN = 15.0
LOCK_SECONDS = 30.0
"""The earliest that BullMQ would bring back by itself what a killed worker held."""
IMPORT_STAGES = ("transfer", "submit", "poll", "publish", "withdraw")
SHORT_STAGES = ("publish", "withdraw")
STILL_AND_AWAKE = (2.0, 1.0)
"""Seconds for which the index stands still and answers in turn, while a short stage is hunted."""
STAGES = ("discover", *IMPORT_STAGES, "index")


class Population:
    """Files on the drive, and every version each of them ever had."""

    def __init__(self, folder: Path, count: int) -> None:
        self.folder = folder
        self.versions: dict[str, set[str]] = {}
        self.edits = 0
        self.late = 0
        self.touched: set[str] = set()
        for number in range(count - DOCX):
            ending = "md" if number % 3 == 0 else "txt"
            self.write(
                f"Shelf {number % (count // 20)}/note {number:03}.{ending}", f"Note {number}."
            )
        for number in range(DOCX):
            path = folder / f"Letters/letter {number}.docx"
            path.parent.mkdir(exist_ok=True)
            letter = docx.Document()
            letter.add_paragraph(f"Letter {number} about the delivery of item {number * 7}.")
            letter.save(str(path))
            self._remember(path)

    def write(self, name: str, words: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{words} The shelf mark is {hashlib.md5(name.encode()).hexdigest()}.\n")
        self._remember(path)

    def arrive(self, count: int) -> None:
        for _ in range(count):
            self.late += 1
            self.write(f"Late/late note {self.late:03}.txt", f"Late note {self.late}.")

    def _remember(self, path: Path) -> None:
        self.versions.setdefault(path.name, set()).add(sha256(path))

    def edit(self, shelf: str, count: int) -> None:
        self.edits += 1
        self.touched.add(shelf)
        for path in sorted((self.folder / shelf).iterdir())[:count]:
            name = path.relative_to(self.folder).as_posix()
            self.write(name, f"Edit {self.edits} of {path.stem}.")

    def delete(self, shelf: str, count: int) -> None:
        self.touched.add(shelf)
        for path in sorted((self.folder / shelf).iterdir())[-count:]:
            path.unlink()

    def rename(self, shelf: str, name: str) -> None:
        self.touched.add(shelf)
        (self.folder / shelf).rename(self.folder / name)

    def now(self) -> dict[str, Path]:
        return files_below(self.folder)


class Hunt:
    """Kills the daemon inside of a stage and watches it resume."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.kills: Counter[str] = Counter()
        self.resumed: list[float] = []
        self.went_on: list[float] = []
        self._event_at_kill = 0
        self._interrupted: list[dict[str, Any]] = []

    def start(self) -> None:
        """Start it, and wait until it works, also on what was interrupted."""
        if not self.kills:
            self.daemon.start(wait=False)
            return
        # Read only now: a commit may have been in the log and not yet seen when it was killed.
        self._event_at_kill = self._last_event()
        began = time.monotonic()
        self.daemon.start(wait=False)
        until(self._works, seconds=60, what=lambda: f"work; {self.daemon.last_words()}")
        self.resumed.append(time.monotonic() - began)
        assert self.resumed[-1] < RESUMES_WITHIN, f"work resumed after {self.resumed[-1]:.1f} s"
        until(self._goes_on, seconds=60, what=lambda: f"the rest; {self.daemon.last_words()}")
        self.went_on.append(time.monotonic() - began)
        assert self.went_on[-1] < LOCK_SECONDS, f"went on after {self.went_on[-1]:.1f} s"

    def _works(self) -> bool:
        """Whether the new process has claimed something, or an import has got further."""
        assert self.daemon.process is not None
        claims = self.daemon.rows(
            "SELECT 1 FROM reminders WHERE owner LIKE ?", f"%-{self.daemon.process.pid}-%"
        )
        return bool(claims) or self._last_event() > self._event_at_kill

    def _last_event(self) -> int:
        (row,) = self.daemon.rows("SELECT coalesce(max(id), 0) AS id FROM import_events")
        return int(row["id"])

    def _goes_on(self) -> bool:
        """Whether something that was interrupted was taken again, or has got further."""
        rows = {
            row["subject_id"]: row
            for row in self.daemon.rows(
                "SELECT subject_id, stage, number, owner, due_at FROM reminders"
            )
        }
        for old in self._interrupted:
            row = rows[old["subject_id"]]
            was_taken = row["owner"] not in {None, old["owner"]}
            # One number is spent on making the row due again.
            has_moved = row["stage"] != old["stage"] or row["number"] > old["number"] + 1
            if was_taken or has_moved or row["due_at"] is None:
                return True
        return False

    def kill_in(self, stage: str, *, group: bool, seconds: float = 60.0) -> bool:
        """Kill everything while a claim of ``stage`` is held; False if none was seen in time.

        Args:
            group: kill the process group and leave the queue server, which has a group of its
                own, to notice; otherwise all processes at once.
        """
        assert self.daemon.process is not None
        pid = self.daemon.process.pid
        found = self._caught(stage, pid, seconds)
        if not found:
            return False
        self._interrupted = found
        self.kills[stage] += 1
        everything = self.daemon.tree()
        if not group:
            _signal(everything, signal.SIGKILL)
        self.daemon.kill()
        _signal(everything, signal.SIGCONT)
        self.daemon.assert_nothing_left()
        return True

    def _caught(self, stage: str, pid: int, seconds: float) -> list[dict[str, Any]]:
        """Stop all processes while ``stage`` is claimed; return the rows that are."""
        deadline = time.monotonic() + seconds
        path = self.daemon.data / "catalog.sqlite"
        until(path.is_file, seconds=30, what="a catalog")
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=30)) as catalog:
            catalog.row_factory = sqlite3.Row
            while time.monotonic() < deadline:
                if not _claimed(catalog, stage, pid):
                    if stage in SHORT_STAGES:
                        # They wait for the index, so they last as long as it stands still; in
                        # between it answers, or it would count as down and get no work.
                        stands = time.monotonic() % sum(STILL_AND_AWAKE) < STILL_AND_AWAKE[0]
                        _signal(_index_of(pid), signal.SIGSTOP if stands else signal.SIGCONT)
                    time.sleep(0.001)
                    continue
                stopped = _stop(pid)
                # Nothing changes any more: what is claimed now is claimed when it dies.
                if found := _claimed(catalog, stage, pid):
                    return found
                _signal(stopped, signal.SIGCONT)
        _signal(_index_of(pid), signal.SIGCONT)
        return []


def _claimed(catalog: sqlite3.Connection, stage: str, pid: int) -> list[dict[str, Any]]:
    try:
        rows = catalog.execute(
            "SELECT subject_id, stage, number, owner FROM reminders "
            "WHERE stage = ? AND owner LIKE ?",
            (stage, f"%-{pid}-%"),
        )
        return [dict(row) for row in rows]
    except sqlite3.OperationalError:  # the tables are being made
        return []


def _index_of(pid: int) -> list[psutil.Process]:
    """The child process that holds the index, if it runs."""
    found = []
    for one in tree(pid)[1:]:
        with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            if "edge_child" in " ".join(one.cmdline()):
                found.append(one)
    return found


def _stop(pid: int) -> list[psutil.Process]:
    # The parent first, so that it starts no more of them.
    _signal(tree(pid)[:1], signal.SIGSTOP)
    everything = tree(pid)
    _signal(everything, signal.SIGSTOP)
    return everything


def _signal(processes: Iterable[psutil.Process], number: signal.Signals) -> None:
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            one.send_signal(number)


@pytest.fixture
def drive(tmp_path: Path, times: int) -> Iterator[tuple[Population, Sim, Daemon]]:
    folder = tmp_path / "OneDrive"
    folder.mkdir()
    files = Population(folder, FILES[times])
    sim = Sim(folder, tmp_path / "graphsim")
    sim.start()
    daemon = Daemon(tmp_path, sim, poll=0.3, grace=GRACE_SECONDS, interpreter=True)
    try:
        yield files, sim, daemon
    finally:
        daemon.end()
        sim.stop()


@pytest.mark.soak
@pytest.mark.timeout(420)
@pytest.mark.parametrize("times", [1, 2])
def test_killed_in_every_stage_and_nothing_is_lost_or_done_twice(
    drive: tuple[Population, Sim, Daemon], times: int
) -> None:
    files, sim, daemon = drive
    hunt = Hunt(daemon)
    began = time.monotonic()
    # Admission of a new connection is over in a few milliseconds, so it may be missed.
    for group in (False, True)[:times]:
        hunt.start()
        if not hunt.kill_in("admit", group=group, seconds=8):
            break
    if daemon.process is None:
        hunt.start()
    for number, group in enumerate((True, False)[:times]):
        for stage in ("discover", "transfer", "submit", "index", "poll"):
            files.arrive(number * LATE_FILES)
            caught = hunt.kill_in(stage, group=group)
            assert caught, f"{stage} was never under way; {daemon.last_words()}"
            hunt.start()
    for number, group in enumerate((True, False)[:times]):
        edited, thinned, renamed = _live_shelves(daemon, files)
        files.edit(edited, 8)
        files.delete(thinned, 12)
        files.rename(renamed, f"Moved shelf {number}")
        for stage in ("publish", "withdraw"):
            assert hunt.kill_in(stage, group=group), f"{stage} was never under way"
            hunt.start()
    until(daemon.answers, seconds=60, what=daemon.last_words)
    daemon.wait_for_rest(files=len(files.now()), seconds=180)
    until(lambda: not _due(daemon), seconds=60, what=lambda: f"rest; due: {_due(daemon)}")
    print(  # noqa: T201 - the figures are the point
        f"\n{sum(hunt.kills.values())} kills {dict(hunt.kills)} in "
        f"{time.monotonic() - began:.0f} s; work resumed after {min(hunt.resumed):.1f} to "
        f"{max(hunt.resumed):.1f} s, on the interrupted after {max(hunt.went_on):.1f} s at most"
    )
    assert all(hunt.kills[stage] >= times for stage in STAGES), hunt.kills
    _compare(files, sim, daemon, kills=sum(hunt.kills.values()))
    assert len(list(daemon.data.glob("work-*"))) <= 1, "copies of documents were left behind"
    certificate = daemon.json("verify")
    assert certificate["holds"], certificate
    daemon.stop()


def _live_shelves(daemon: Daemon, files: Population) -> list[str]:
    """Wait for three shelves that are searchable but for a few files, and not touched so far."""

    def found() -> list[str]:
        rows = daemon.rows(
            """
            SELECT folders.name AS shelf, count(live_import_id) AS files
            FROM documents JOIN items USING (drive_id, item_id)
            JOIN items AS folders ON folders.item_id = items.parent_id
            WHERE folders.name LIKE 'Shelf %' GROUP BY 1 HAVING files >= 16
            """
        )
        untouched = [row["shelf"] for row in rows if row["shelf"] not in files.touched]
        return untouched[:3] if len(untouched) >= 3 else []

    return until(found, seconds=90, what="three shelves to become searchable")


def _due(daemon: Daemon) -> list[dict[str, Any]]:
    return daemon.rows(
        "SELECT subject_id, stage FROM reminders WHERE due_at NOT NULL AND stage <> 'discover'"
    )


def _compare(files: Population, sim: Sim, daemon: Daemon, *, kills: int) -> None:
    """Compare files, objects, points, requests and charges; drivefeed is not asked."""
    live = {
        row["path"]: row
        for row in daemon.rows(
            """
            SELECT parent.name || '/' || items.name AS path, items.name AS name, items.item_id,
                   documents.org_id || '/' || documents.id || '/' || live_import_id || '/'
                     || live_round AS key,
                   live_import_id AS import_id, live_round AS round
            FROM documents JOIN items USING (drive_id, item_id)
            JOIN items AS parent
              ON parent.item_id = items.parent_id AND parent.drive_id = items.drive_id
            WHERE live_import_id NOT NULL
            """
        )
    }
    on_disk = files.now()
    assert live.keys() == on_disk.keys()
    # Objects: one for each file, byte for byte, and no other.
    objects = daemon.objects()
    assert {row["key"] for row in live.values()} == objects.keys()
    for path, row in live.items():
        assert objects[row["key"]].read_bytes() == on_disk[path].read_bytes(), path
    # Points: every file is one short paragraph, so it is one chunk.
    assert daemon.points() == {(row["import_id"], row["round"]): (True, 1) for row in live.values()}
    _compare_charges(files, daemon)
    _compare_requests(files, sim, kills=kills)


def _compare_charges(files: Population, daemon: Daemon) -> None:
    names = {
        row["id"]: row["name"]
        for row in daemon.rows(
            "SELECT documents.id, items.name FROM documents JOIN items USING (drive_id, item_id)"
        )
    }
    ledger = daemon.ledger()
    charged = Counter((one.document_id, one.sha256) for one in ledger)
    assert set(charged.values()) == {1}
    assert len({one.import_id for one in ledger}) == len(ledger)
    for one in ledger:
        assert one.sha256 in files.versions[names[one.document_id]]
    paid = {(names[one.document_id], one.sha256) for one in ledger}
    assert {(path.name, sha256(path)) for path in files.now().values()} <= paid
    (org,) = daemon.rows("SELECT pages_used FROM orgs")
    assert org["pages_used"] == sum(one.pages for one in ledger)


def _compare_requests(files: Population, sim: Sim, *, kills: int) -> None:
    bodies = [one for one in sim.requests(op="download") if one["status"] in {200, 206}]
    assert not any(one["had_authorization"] for one in bodies)
    versions = sum(len(known) for known in files.versions.values())
    # A transfer that was killed may be repeated: at most those that ran at the time (four).
    assert versions - 40 <= len(bodies) <= versions + 4 * kills, (len(bodies), versions)
    most = Counter(one["item"] for one in bodies).most_common(1)[0][1]
    assert most <= 2 + 4, json.dumps(most)
    print(f"{len(bodies)} downloads for {versions} versions")  # noqa: T201 - the figures are the point

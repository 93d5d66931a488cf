"""Documents of the real world: each has the outcome that was found out by hand beforehand."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from integration.indexer.conftest import CORPUS
from integration.indexer.test_corpus import PHRASES, elsewhere, expected
from support.commands import run_command
from support.demo import Demo, Run, data_folder, demo_once, running_demo
from support.evidence import files_below, objects_in, read_log, rows_in, sha256
from support.processes import around, described, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from acceptance.conftest import Figure

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

SLOW_READER = "bug65649.docx"
"""Two libraries never come back from this file; its text takes longer than that of all others."""

EXPECTED_WARNINGS = {"loop_stalled"}
"""A busy machine may hold up the event loop; how long is measured, not tested."""


@dataclass(frozen=True)
class Outing:
    """A demo over a folder with real documents, run to its end.

    Attributes:
        folder: the documents; all of them only in the soak run.
    """

    cwd: Path
    folder: Path
    data: Path
    run: Run

    @property
    def is_whole(self) -> bool:
        return self.folder == CORPUS

    @property
    def expected(self) -> dict[str, str]:
        return {name: outcome for name, outcome in expected() if (self.folder / name).exists()}


@pytest.fixture(
    scope="module",
    params=["without the slowest", pytest.param("all", marks=pytest.mark.soak)],
)
def outing(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outing:
    if not CORPUS.is_dir():
        pytest.skip("The folder with real documents (../shared/corpus) is not on this machine.")
    cwd = tmp_path_factory.mktemp("real")
    folder = CORPUS
    if request.param != "all":
        folder = cwd / "corpus"
        shutil.copytree(CORPUS, folder, ignore=shutil.ignore_patterns(SLOW_READER))
    run = demo_once(cwd, str(folder), seconds=800)
    return Outing(cwd, folder, data_folder(cwd), run)


def allowed(outcome: str) -> set[str]:
    """Read an outcome of the table: reasons, or ``searchable``, joined by ``or``."""
    return set(re.sub(r"\(.*\)", "", outcome).replace(" or ", " ").split())


def test_every_file_has_the_outcome_that_is_expected(outing: Outing, figure: Figure) -> None:
    assert outing.run.code == 0, outing.run.text
    figure("real documents: the whole command took", f"{outing.run.seconds:.0f} s")
    found = {
        one["path"]: one["standing"] if one["standing"] == "searchable" else one["why"]
        for one in demo_json(outing, "imports")
    }
    rows = outing.expected
    wrong = {
        name: (found.get(name), outcome)
        for name, outcome in rows.items()
        if found.get(name) not in allowed(outcome)
    }
    assert not wrong
    assert found.keys() == files_below(outing.folder).keys()
    searchable = [found[name] for name in rows].count("searchable")
    assert searchable >= (47 if outing.is_whole else 46)


def demo_json(outing: Outing, *words: str) -> list[dict[str, Any]]:
    printed = run_command(*words, "--json", cwd=outing.cwd).stdout
    answer: list[dict[str, Any]] = json.loads(printed)
    return answer


def test_nothing_is_logged_that_is_not_expected(outing: Outing, figure: Figure) -> None:
    entries = read_log(outing.data / "drivefeed.log")
    odd = [
        entry
        for entry in entries
        if entry["level"] != "info" and entry["event"] not in EXPECTED_WARNINGS
    ]
    assert not odd
    (watched,) = (one for one in entries if one["event"] == "loop_watched")
    stall = f"{watched['longest_stall_ms']} ms"
    figure("real documents: the longest stall of the loop was", stall)
    graphsim = (outing.data / "graphsim.log").read_text()
    assert "Traceback" not in graphsim


def test_the_file_that_hangs_other_readers_delays_nobody(outing: Outing, figure: Figure) -> None:
    if not outing.is_whole:
        pytest.skip(f"{SLOW_READER} is left out; 'make soak' takes it in.")
    (row,) = rows_in(
        outing.data,
        "SELECT imports.id, chunks FROM imports JOIN documents ON documents.id = document_id"
        " WHERE name = ?",
        SLOW_READER,
    )
    ended = {
        entry["import_id"]: (datetime.fromisoformat(entry["timestamp"]), entry["ms"] / 1000)
        for entry in read_log(outing.data / "drivefeed.log")
        if entry["event"] == "stage_done" and entry["stage"] == "index"
    }
    end, seconds = ended.pop(row["id"])
    start = end - timedelta(seconds=seconds)
    meanwhile = [at for at, _ in ended.values() if start < at < end]
    waiting = [at for at, _ in ended.values() if at > start]
    figure(
        f"real documents: {SLOW_READER}, {row['chunks']} chunks, took {seconds:.0f} s; meanwhile",
        f"{len(meanwhile)} of {len(waiting)} other files ended",
    )
    # It takes longer than all others together, so most of them pass by it.
    assert len(meanwhile) > len(waiting) / 2


def test_store_and_ledger_hold_each_searchable_file_once(outing: Outing) -> None:
    live = rows_in(
        outing.data,
        "SELECT name, live_import_id, sha256 FROM documents"
        " JOIN imports ON imports.id = live_import_id",
    )
    on_disk = {name: sha256(path) for name, path in files_below(outing.folder).items()}
    assert {row["name"]: row["sha256"] for row in live}.items() <= on_disk.items()
    charged = rows_in(outing.data, "SELECT import_id, sha256 FROM ledger")
    assert sorted(row["import_id"] for row in charged) == sorted(
        row["live_import_id"] for row in live
    )
    # The bytes of a file that could not be read are kept, for a retry.
    stored = {key.split("/")[2]: sha256(path) for key, path in objects_in(outing.data).items()}
    rejected = rows_in(outing.data, "SELECT id, sha256 FROM imports WHERE state = 'rejected'")
    wanted = {row["live_import_id"]: row["sha256"] for row in live}
    assert stored == wanted | {
        row["id"]: row["sha256"] for row in rejected if row["sha256"] is not None
    }


def test_no_process_outlives_the_command(outing: Outing) -> None:
    assert not described(around(outing.cwd))


@pytest.fixture(scope="module")
def again(outing: Outing) -> Iterator[Demo]:
    """The same demo, started once more: for questions, and because it must not do anything."""
    with running_demo(outing.cwd, outing.folder, outing.data) as demo:
        yield demo


def phrases(name: str) -> list[str]:
    """Take words of a file that other readers, or people, found in it; the longest first."""
    own = [PHRASES[name]] if name in PHRASES else []
    return own + sorted(elsewhere(CORPUS / name), key=len, reverse=True)[:3]


@pytest.mark.parametrize("name", [name for name, outcome in expected() if outcome == "searchable"])
def test_a_file_is_found_by_a_phrase_of_its_own_text(
    outing: Outing, again: Demo, name: str
) -> None:
    if name not in outing.expected:
        pytest.skip(f"{name} is left out; 'make soak' takes it in.")
    words = phrases(name)
    assert words
    found = {phrase: [hit["path"] for hit in again.search(phrase[:300])] for phrase in words}
    assert any(name in paths for paths in found.values()), found


def test_a_second_start_downloads_and_charges_nothing(outing: Outing, again: Demo) -> None:
    started = again.tree()[0].create_time() * 1000
    until(
        lambda: again.rows("SELECT id FROM drives WHERE last_round_at > ?", started),
        seconds=60,
        what="a look at the folder",
    )
    again.wait_for_rest(files=len(files_below(outing.folder)))
    assert again.sim.downloads() == []
    assert {one.import_id for one in again.ledger()} == {one for one, _ in again.points()}

"""Folders and files that nobody wants to get: each has a clear outcome, and holds up no other."""

from __future__ import annotations

import io
import json
import sys
import time
import unicodedata
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pypdfium2
import pytest

from drivefeed.domain.explanations import EXPLANATIONS
from drivefeed.domain.reasons import Reason
from drivefeed.sample.manuscript import PageBreak, Paragraph
from drivefeed.sample.pdf import render_pdf
from support.daemon import Daemon, drivefeed, running
from support.evidence import files_below, sha256
from support.processes import until

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG_NAME = "x" * 246 + ".txt"
NAMES = [
    "100 % of it.txt",
    "%41 is not A.txt",
    "a#b#c.md",
    "it's 'quoted'.txt",
    "semi;colon & ampersand + plus = equals.txt",
    "rocket 🚀 and family 👨‍👩‍👧.txt",
    "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd.txt",
    unicodedata.normalize("NFD", "Décision médicale à Zürich.txt"),
    unicodedata.normalize("NFC", "Décision médicale à Zürich.txt"),
    "[bold]not markup[red].txt",
    " leading blank.txt",
    LONG_NAME,
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "OneDrive"
    made.mkdir()
    return made


def outcomes(daemon: Daemon) -> dict[str, tuple[str, str]]:
    """Return standing and reason of each file, as 'drivefeed imports' tells them."""
    return {one["path"]: (one["standing"], one["why"]) for one in daemon.json("imports")}


def assert_clean(daemon: Daemon) -> None:
    """All parts agree, nothing is half-written, and no step failed in a way nobody foresaw."""
    assert daemon.json("verify")["holds"]
    assert not list((daemon.data / "objects" / ".partial").iterdir())
    unexpected = [one for one in daemon.log() if one.get("level") in {"error", "unknown"}]
    assert not unexpected, unexpected[:3]
    assert not [one for one in daemon.log() if one["event"] == "attempt_failed"]


def test_an_empty_folder_is_no_trouble(tmp_path: Path, folder: Path) -> None:
    with running(tmp_path, folder) as daemon:
        # Before the folder is connected there is nothing to wait for.
        until(lambda: daemon.rows("SELECT id FROM connections"), seconds=60, what=daemon.last_words)
        daemon.wait_for_rest(files=0)
        (progress,) = daemon.json("status")
        assert (progress["found"], progress["listed"]) == (0, True)
        assert_clean(daemon)
        (folder / "first.txt").write_text("The first word of all.\n")
        daemon.wait_for_rest(files=1)
        assert daemon.search("first word")[0]["path"] == "first.txt"
    ended = drivefeed("demo", str(tmp_path / "nothing"), "--once", cwd=tmp_path, ok=(3,))
    assert "There is no folder" in ended.stderr
    assert "Traceback" not in ended.stderr
    (tmp_path / "nothing").mkdir()
    answer = json.loads(
        drivefeed("demo", str(tmp_path / "nothing"), "--once", "--json", cwd=tmp_path).stdout
    )
    assert answer["connections"][0]["found"] == 0
    assert answer["certificate"]["holds"]


def test_names_of_every_kind(tmp_path: Path, folder: Path) -> None:
    for number, name in enumerate(NAMES):
        below = folder / f"# {number} %2F 'quote' é"
        below.mkdir()
        (below / name).write_text(f"The secret number of file {number} is {number * 7919}.\n")
    with running(tmp_path, folder) as daemon:
        daemon.wait_for_rest(files=len(NAMES))
        told = outcomes(daemon)
        on_disk = files_below(folder)
        assert told.keys() == on_disk.keys()
        assert {standing for standing, _ in told.values()} == {"searchable"}, told
        hashes = {sha256(path) for path in daemon.objects().values()}
        assert hashes == {sha256(path) for path in on_disk.values()}
        for number, path in enumerate(on_disk):
            (found,) = daemon.json("why", path)
            assert found["path"] == path
            # Each command is a process, so not every name is asked for twice.
            if number % 3 == 0:
                assert "searchable" in daemon.command("why", path)
        best = daemon.search("secret number of file 11 is 87109", limit=3)
        assert any(one["path"].endswith(LONG_NAME) for one in best)
        # What people see must not be read as markup of the terminal.
        assert "[bold]not markup[red].txt" in daemon.command("imports")
        assert_clean(daemon)


def test_files_that_are_not_what_they_say(tmp_path: Path, folder: Path) -> None:
    program = Path(sys.executable).resolve().read_bytes()[: 2 << 20]
    wanted = {
        "nothing.txt": (b"", "skipped", "empty_file"),
        "nothing.docx": (b"", "skipped", "empty_file"),
        "program.docx": (program, "failed", "unsupported_type"),
        "program.pdf": (program, "failed", "unsupported_type"),
        "program.txt": (program, "failed", "unsupported_type"),
        "program.exe": (program, "skipped", "unsupported_type"),
        "broken.docx": (_broken_zip(), "failed", "corrupt"),
        "archive.docx": (_zip_without_a_document(), "failed", "corrupt"),
        "only blanks.txt": (b" \n\t" * 200, "failed", "no_text"),
        "locked.txt": (b"Nobody may read this.\n", "failed", "download_forbidden"),
        "good.txt": (b"Among all this, one good file.\n", "searchable", "settled"),
    }
    for name, (content, _, _) in wanted.items():
        (folder / name).write_bytes(content)
    (folder / "locked.txt").chmod(0)
    with running(tmp_path, folder) as daemon:
        daemon.wait_for_rest(files=len(wanted))
        told = outcomes(daemon)
        assert told == {name: (standing, why) for name, (_, standing, why) in wanted.items()}
        for name, (_, standing, why) in wanted.items():
            shown = " ".join(daemon.command("why", name).split())
            if standing != "searchable":
                explained = EXPLANATIONS[Reason(why)]
                assert explained.meaning in shown
                assert explained.remedy in shown
        assert len(daemon.ledger()) == 1
        assert_clean(daemon)


def _broken_zip() -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", "<Types/>" * 5000)
        archive.writestr("word/document.xml", "<w:document/>" * 50_000)
    return whole.getvalue()[:-400]


def _zip_without_a_document() -> bytes:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        archive.writestr("holiday.txt", "Sand and sea.")
    return whole.getvalue()


@pytest.mark.slow
def test_a_pdf_of_300_pages(tmp_path: Path, folder: Path) -> None:
    blocks: list[Paragraph | PageBreak] = []
    for number in range(1, 301):
        blocks += [
            Paragraph(f"Page number {number} tells of the well at milestone {number * 131}."),
            PageBreak(),
        ]
    path = folder / "three hundred.pdf"
    path.write_bytes(render_pdf(list(blocks[:-1])))
    assert len(pypdfium2.PdfDocument(path)) == 300
    with running(tmp_path, folder) as daemon:
        seconds = daemon.wait_for_rest(files=1)
        (found,) = daemon.search("the well at milestone 39169", limit=1)
        assert (found["path"], found["page"]) == ("three hundred.pdf", 299)
        assert [one.pages for one in daemon.ledger()] == [300]
        (points,) = daemon.points().values()
        print(f"\n300 pages, {points[1]} points, in {seconds:.0f} s")  # noqa: T201 - the figure is the point
        assert_clean(daemon)


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(60, marks=[pytest.mark.slow, pytest.mark.timeout(300)]),
        pytest.param(1_000, marks=[pytest.mark.soak, pytest.mark.timeout(900)]),
        pytest.param(5_000, marks=[pytest.mark.soak, pytest.mark.timeout(4_000)]),
    ],
)
def test_many_tiny_files(tmp_path: Path, folder: Path, count: int) -> None:
    for number in range(count):
        below = folder / f"{number % 20}"
        below.mkdir(exist_ok=True)
        (below / f"{number}.txt").write_text(f"Tiny {number}.\n")
    began = time.monotonic()
    with running(tmp_path, folder, interpreter=True) as daemon:
        most = 0
        for _ in _looks(daemon, count):
            most = max(most, sum(one.memory_info().rss for one in daemon.tree()))
        seconds = time.monotonic() - began
        live = daemon.rows("SELECT count(*) AS files FROM documents WHERE live_import_id NOT NULL")
        assert live == [{"files": count}]
        assert len(daemon.objects()) == len(daemon.ledger()) == len(daemon.points()) == count
        print(  # noqa: T201 - the figures are the point
            f"\n{count} files in {seconds:.0f} s, {count / seconds:.1f} a second; the tree took "
            f"{most >> 20} MiB at most; longest stall {daemon.get('/healthz')['longest_stall_ms']}"
        )
        assert most < 700 << 20, "memory grows with the number of files"
        assert_clean(daemon)


def _looks(daemon: Daemon, count: int) -> Iterator[None]:
    while True:
        yield
        try:
            daemon.wait_for_rest(files=count, seconds=1.0)
        except AssertionError:
            assert daemon.process is not None
            if daemon.process.poll() is not None:
                raise
        else:
            return

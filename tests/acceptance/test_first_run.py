"""A newcomer's first minutes: one command, and what is in the folder is found."""

from __future__ import annotations

import json
import re
import secrets
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import docx
import pptx
import pytest

from drivefeed.indexer.embed import LocalEmbedder
from drivefeed.indexer.vectors.edge import EdgeIndex
from support.commands import run_command
from support.demo import Run, data_folder, demo_once
from support.evidence import files_below, objects_in, rows_in, sha256
from support.processes import around, described

if TYPE_CHECKING:
    from pathlib import Path

    from acceptance.conftest import Figure

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

FIRST_SECONDS = 20
ALL_SECONDS = 60


@dataclass(frozen=True)
class Outing:
    """A demo over the sample, and another one after three sentences were planted.

    Attributes:
        planted: path → the sentence.
        before: the charges after the first run: import id → pages.
    """

    cwd: Path
    data: Path
    folder: Path
    first: Run
    second: Run
    planted: dict[str, str]
    before: dict[str, int]


def sentence() -> str:
    """Make up a sentence with words that stand nowhere else."""
    syllables = ("ba", "dor", "fe", "gim", "ku", "lor", "mi", "nax", "pel", "ruz", "sho", "tiv")
    one, two, three = (
        "".join(secrets.choice(syllables) for _ in range(5)).capitalize() for _ in range(3)
    )
    return f"The {one} valve was handed to {two} by the keeper of {three}."


def plant_in_word(path: Path, words: str) -> None:
    document = docx.Document(str(path))
    document.paragraphs[len(document.paragraphs) // 2].insert_paragraph_before(words)
    document.save(str(path))


def plant_in_slides(path: Path, words: str) -> None:
    deck = pptx.Presentation(str(path))
    box = deck.slides[len(deck.slides) - 1].shapes.add_textbox(0, 0, 5_000_000, 500_000)
    box.text_frame.text = words
    deck.save(str(path))


def plant_in_sheet(path: Path, words: str) -> None:
    """Add a row to the first sheet, as raw XML: nothing here both reads and writes workbooks."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    name = "xl/worksheets/sheet1.xml"
    row = f'<row r="900"><c r="A900" t="inlineStr"><is><t>{words}</t></is></c></row>'
    changed = parts[name].decode().replace("</sheetData>", f"{row}</sheetData>")
    assert row in changed
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for each, content in (parts | {name: changed.encode()}).items():
            archive.writestr(each, content)


PLANTS = {
    "Handbook/Expense rules.docx": plant_in_word,
    "Sales/Quarterly review.pptx": plant_in_slides,
    "Laboratory/Instrument inventory.xlsx": plant_in_sheet,
}


@pytest.fixture(scope="module")
def outing(tmp_path_factory: pytest.TempPathFactory) -> Outing:
    cwd = tmp_path_factory.mktemp("newcomer")
    first = demo_once(cwd)
    data, folder = data_folder(cwd), cwd / "drivefeed-demo" / "OneDrive"
    before = charges(data)
    planted = {path: sentence() for path in PLANTS}
    for path, words in planted.items():
        PLANTS[path](folder / path, words)
    second = demo_once(cwd)
    return Outing(cwd, data, folder, first, second, planted, before)


def charges(data: Path) -> dict[str, int]:
    return {row["import_id"]: row["pages"] for row in rows_in(data, "SELECT * FROM ledger")}


def first_searchable(run: Run) -> float:
    """Return after how many seconds it said that something is searchable."""
    return next(at for at, line in run.lines if re.search(r" [1-9]\d* searchable", line))


def test_every_file_on_disk_is_found_and_searchable(outing: Outing, figure: Figure) -> None:
    files = len(files_below(outing.folder))
    assert files >= 15
    for run in (outing.first, outing.second):
        assert run.code == 0, run.text
        assert f"{files} found = {files} searchable\n" in f"{run.text}\n"
        assert "extra = 0" in run.text
    first = first_searchable(outing.first)
    figure("sample: the first document is searchable after", f"{first:.1f} s")
    figure("sample: the whole command took", f"{outing.first.seconds:.1f} s")


@pytest.mark.soak
def test_the_wait_is_short_where_nothing_else_runs(outing: Outing) -> None:
    assert first_searchable(outing.first) < FIRST_SECONDS
    assert outing.first.seconds < ALL_SECONDS
    assert outing.second.seconds < ALL_SECONDS


@pytest.mark.parametrize("path", PLANTS)
def test_a_planted_sentence_is_found_first_and_in_the_right_file(outing: Outing, path: str) -> None:
    words = outing.planted[path]
    found = search(outing.cwd, words)
    assert found[0]["path"] == path
    assert words in found[0]["snippet"]
    rarest = words.split()[1]
    assert search(outing.cwd, rarest)[0]["path"] == path


def search(cwd: Path, words: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run_command("search", words, "--json", cwd=cwd).stdout)
    return found


async def test_the_counts_agree_with_the_index_itself(outing: Outing) -> None:
    embedder = LocalEmbedder()
    index = EdgeIndex(outing.data / "index", model_name=embedder.name, dimension=embedder.dimension)
    try:
        in_index = {
            (import_id, round_, live): points
            async for import_id, round_, live, points in index.rounds()
        }
    finally:
        await index.aclose()
    live = rows_in(
        outing.data,
        "SELECT live_import_id, live_round, chunks FROM documents"
        " JOIN imports ON imports.id = live_import_id",
    )
    assert len(live) == len(files_below(outing.folder))
    assert in_index == {(r["live_import_id"], r["live_round"], True): r["chunks"] for r in live}
    assert all(r["chunks"] > 0 for r in live)


def test_the_store_holds_each_file_byte_for_byte_and_nothing_else(outing: Outing) -> None:
    on_disk = sorted(sha256(path) for path in files_below(outing.folder).values())
    assert sorted(sha256(path) for path in objects_in(outing.data).values()) == on_disk


def test_only_the_new_versions_are_charged_by_the_second_run(outing: Outing) -> None:
    files = len(files_below(outing.folder))
    after = charges(outing.data)
    assert len(outing.before) == files
    assert len(after) == files + len(PLANTS)
    assert outing.before.items() <= after.items()
    used = rows_in(outing.data, "SELECT pages_used FROM orgs")[0]["pages_used"]
    assert used == sum(after.values())


def test_no_process_outlives_the_command(outing: Outing) -> None:
    assert not described(around(outing.cwd))

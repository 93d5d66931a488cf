"""The sample's files are what their names say, hold what was written, and never change."""

from __future__ import annotations

import csv
import hashlib
import os
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree as ET
from zipfile import ZipFile

import pypdfium2
import pytest
from pptx import Presentation
from pptx.enum.shapes import MSO_SHAPE_TYPE
from python_calamine import CalamineWorkbook
from selectolax.lexbor import LexborHTMLParser
from striprtf.striprtf import rtf_to_text

from drivefeed.sample import SAMPLE_DOCUMENTS, SAMPLE_QUESTIONS, write_sample
from drivefeed.sample.manuscript import parse

WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
PATHS = [document.path for document in SAMPLE_DOCUMENTS]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("sample")
    write_sample(made)
    return made


def paths_ending(suffix: str) -> list[str]:
    return [path for path in PATHS if path.endswith(suffix)]


def word_text(path: Path, part: str) -> str:
    """Text of one part of a DOCX, read without the library that wrote it."""
    with ZipFile(path) as container:
        root = ET.fromstring(container.read(part))
    return "\n".join(
        "".join(run.text or "" for run in paragraph.iter(f"{WORD}t"))
        for paragraph in root.iter(f"{WORD}p")
    )


def test_every_supported_type_and_only_what_the_catalogue_names(folder: Path) -> None:
    on_disk = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert on_disk == set(PATHS)
    types = Counter(Path(path).suffix for path in PATHS)
    assert set(types) == {
        *(".pdf", ".docx", ".pptx", ".xlsx"),
        *(".csv", ".html", ".txt", ".md", ".rtf"),
    }
    assert len(PATHS) >= 15


def test_names_are_awkward_enough_and_composed() -> None:
    assert any("#" in path for path in PATHS)
    assert any("é" in path for path in PATHS)
    assert any("'" in path for path in PATHS)
    assert any(path.startswith("Contracts/2026/") for path in PATHS)
    assert all(unicodedata.is_normalized("NFC", path) for path in PATHS)


@pytest.mark.parametrize(
    ("path", "pages", "phrase"),
    [
        ("Handbook/Operations handbook.pdf", 5, "anyone may stop it"),
        ("Handbook/Records retention.pdf", 3, "We keep invoices for ten years"),
        ("Contracts/Non-disclosure agreement Vassmark.pdf", 1, "20 000 €"),
    ],
)
def test_pdf_pages_hold_the_text(folder: Path, path: str, pages: int, phrase: str) -> None:
    with pypdfium2.PdfDocument(folder / path) as document:
        texts = [page.get_textpage().get_text_range() for page in document]
    assert len(texts) == pages
    assert phrase in " ".join("\n".join(texts).split())
    for number, text in enumerate(texts, start=1):
        assert f"Page {number}" in text


@pytest.mark.parametrize("path", paths_ending(".pdf"))
def test_pdf_cross_references_point_at_their_objects(folder: Path, path: str) -> None:
    content = (folder / path).read_bytes()
    start = int(content.rsplit(b"startxref", 1)[1].split()[0])
    assert content[start : start + 4] == b"xref"
    offsets = re.findall(rb"(\d{10}) \d{5} n", content[start:])
    assert len(offsets) > 5
    for number, offset in enumerate(offsets, start=1):
        assert content[int(offset) :].startswith(b"%d 0 obj" % number)


@pytest.mark.parametrize(
    ("path", "header", "box", "cell", "breaks"),
    [
        ("Handbook/Expense rules.docx", "version 7", "yes in writing", "75 €", 2),
        ("Contracts/2026/Supply agreement #214.docx", "no. 214", "moulded into", "13,20 €", 2),
        ("Sécurité/Procédure d'évacuation.docx", "Grenoble", "le 112", "les pompiers seuls", 1),
    ],
)
def test_docx_has_header_box_table_and_pages(
    folder: Path, *, path: str, header: str, box: str, cell: str, breaks: int
) -> None:
    assert header in word_text(folder / path, "word/header1.xml")
    with ZipFile(folder / path) as container:
        assert container.testzip() is None
        root = ET.fromstring(container.read("word/document.xml"))
    boxes = "".join(run.text or "" for b in root.iter(f"{WORD}txbxContent") for run in b.iter())
    cells = ["".join(run.text or "" for run in c.iter(f"{WORD}t")) for c in root.iter(f"{WORD}tc")]
    page_breaks = [b for b in root.iter(f"{WORD}br") if b.get(f"{WORD}type") == "page"]
    assert box in boxes
    assert cell in cells
    assert len(page_breaks) == breaks


@pytest.mark.parametrize(
    ("path", "slides", "grouped", "note"),
    [
        ("Laboratory/Bench safety.pptx", 7, "Fill to the mark", "Acetone eats through nitrile"),
        ("Sales/Quarterly review.pptx", 6, "Full test cell", "140 gauges over three years"),
    ],
)
def test_pptx_has_notes_tables_and_groups(
    folder: Path, path: str, slides: int, grouped: str, note: str
) -> None:
    presentation = Presentation(str(folder / path))
    assert len(presentation.slides) == slides
    groups = [
        shape.text_frame.text
        for slide in presentation.slides
        for group in slide.shapes
        if group.shape_type == MSO_SHAPE_TYPE.GROUP
        for shape in group.shapes
    ]
    notes = [slide.notes_slide.notes_text_frame.text for slide in presentation.slides]
    assert grouped in groups
    assert note in " ".join(notes)
    assert any(shape.has_table for slide in presentation.slides for shape in slide.shapes)


def test_workbooks_hold_numbers_and_dates(folder: Path) -> None:
    prices = CalamineWorkbook.from_path(str(folder / "Sales/Price list 2026.xlsx"))
    assert prices.sheet_names == ["Gauges", "Services", "Discounts"]
    rows = prices.get_sheet_by_name("Gauges").to_python()
    assert rows[0] == ["Article", "Description", "Price in €", "Delivery"]
    assert ["LF-500", "Flow gauge, radar, mounted under bridges", 4350.0, "eight weeks"] in rows
    inventory = CalamineWorkbook.from_path(str(folder / "Laboratory/Instrument inventory.xlsx"))
    first = inventory.get_sheet_by_name("Instruments").to_python()[1]
    assert str(first[3]) == "2026-09-01"


def test_measurements_are_a_regular_table(folder: Path) -> None:
    with (folder / "Laboratory/Orna measurements 2026.csv").open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len(rows) == 180
    highest = max(rows, key=lambda row: float(row["turbidity_ntu"]))
    assert "peak of the flood" in highest["remark"]
    assert all(float(row["turbidity_ntu"]) > 0 for row in rows)


def test_rtf_and_html_are_read_back_by_others(folder: Path) -> None:
    # striprtf has no type hints
    rtf = rtf_to_text((folder / "Contracts/2026/Amendment to #214.rtf").read_text("ascii"))  # type: ignore[no-untyped-call]
    assert "the buyer pays 22 €." in rtf
    page = LexborHTMLParser((folder / "Support/Questions customers ask.html").read_bytes())
    assert len(page.css("h3")) == 6
    assert len(page.css("td")) == 12


@pytest.mark.parametrize("path", [*paths_ending(".md"), *paths_ending(".txt")])
def test_plain_texts_are_utf8_with_line_feeds(folder: Path, path: str) -> None:
    text = (folder / path).read_bytes().decode("utf-8")
    assert len(text.split()) > 100
    assert "\r" not in text


@pytest.mark.parametrize("path", [*paths_ending("x")])
def test_office_files_carry_no_time_of_their_making(folder: Path, path: str) -> None:
    today = datetime.now(UTC).strftime("%Y-%m-%d").encode()
    with ZipFile(folder / path) as container:
        assert {member.date_time for member in container.infolist()} == {(2026, 3, 16, 9, 0, 0)}
        for member in container.namelist():
            assert today not in container.read(member), member


def test_another_process_in_another_time_zone_makes_the_same_bytes(folder: Path) -> None:
    code = (
        "import hashlib;from drivefeed.sample import SAMPLE_DOCUMENTS as D;"
        "[print(hashlib.sha256(d.render()).hexdigest()) for d in D]"
    )
    environment = {
        **os.environ,
        "TZ": "Pacific/Kiritimati",
        "PYTHONHASHSEED": "7",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    there = subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    here = [hashlib.sha256((folder / path).read_bytes()).hexdigest() for path in PATHS]
    assert there.stdout.split() == here


def test_a_second_run_changes_nothing(folder: Path) -> None:
    before = {path: (folder / path).stat() for path in PATHS}
    write_sample(folder)
    write_sample(folder, replace=True)
    for path in PATHS:
        after = (folder / path).stat()
        assert (after.st_mtime_ns, after.st_ino) == (
            before[path].st_mtime_ns,
            before[path].st_ino,
        )


def test_edits_stay_unless_replacement_is_asked_for(tmp_path: Path) -> None:
    paths = write_sample(tmp_path)
    edited, deleted = paths[0], paths[1]
    original, mine = edited.read_bytes(), tmp_path / "mine.txt"
    edited.write_text("my own words", encoding="utf-8")
    mine.write_text("mine", encoding="utf-8")
    deleted.unlink()

    assert write_sample(tmp_path) == paths
    assert edited.read_text(encoding="utf-8") == "my own words"
    assert deleted.exists()

    write_sample(tmp_path, replace=True)
    assert edited.read_bytes() == original
    assert mine.read_text(encoding="utf-8") == "mine"


def test_each_question_names_a_document_and_each_document_answers_one() -> None:
    asked_for = {question.path for question in SAMPLE_QUESTIONS}
    assert len(SAMPLE_QUESTIONS) >= 10
    assert asked_for == set(PATHS) - {"Start here.md"}


def test_an_unknown_mark_is_refused() -> None:
    with pytest.raises(ValueError, match="@nowhere"):
        parse("@nowhere text")

"""Every real document has the outcome of EXPECTED.tsv, and gives up the words that are in it.

What must be found is established without our readers: by hand and with pdftotext (PHRASES), from
the raw XML of the package, or by another library.
"""

from __future__ import annotations

import csv
import datetime as dt
import re
import zipfile
from html import unescape
from typing import TYPE_CHECKING

import docx
import pptx
import pytest
import python_calamine

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.model import Limits, Rejected
from integration.indexer.conftest import CORPUS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from drivefeed.indexer.extract import ExtractionPool
    from drivefeed.indexer.model import Extraction

pytestmark = pytest.mark.asyncio(loop_scope="module")

PHRASES = {
    "2.4.0-tesseract.txt": "org.apache.tika.parser.gdal.GDALParser",
    "Bug47742-text.txt": "Der Aaa Satz.",
    "extendedtextstrings.txt": "Rich text with extended information test",
    "stringacross2continuations.txt": "String length 0x14=20",
    "testAnnotations.pdf": "Here is a comment",
    "testMicrosoftIRMServices.pdf": "Download a compatible PDF reader",
    "testOverlappingText.pdf": "Text the second",
    "testPDF-custommetadata.pdf": "Hello World!",
    "testPDFPackage.pdf": "Multiple files are bound together in this PDF Package",
    "testPDF_XMPBasicSchema.pdf": "Multiple rdf:Description tags",
    "testPDF_rotated.pdf": "The Apache Tika project was formally started when the Tika proposal",
    "testHTML_metadata.html": "All meta information goes in the head section",
    "testHTML_script_in_body.html": "This is a test.",
    "testlargerbuffer.html": "Коммерческая недвижимость",
    "testRTFCorruptListOverride.rtf": "Apples can be eaten hot or cold, in pies or sauces",
    "testRTFListOverride.rtf": "Body",
    "testRTFWindowsCodepage1250.rtf": "zażółć gęślą jaźń",
    "56325a.xls": "Just a test",
    "named-cell-in-formula-test.xls": "10 | 20 | 30",
    "test-columnar.xls": "Square of the Record Number",
    "Bug51170.docx": "ESTATUTOS DA ASSOCIAÇÃO",
    "Headers.docx": "Section 2",
    "testComment.docx": "Here is a comment",
    "testComment.pptx": "Here is a comment",
    "testWORD_2006ml.docx": "This is a text box",
    "bug65649.docx": "Комитет по информатизации и связи",
    "documentProtection_trackedChanges_no_password.docx": "Tracked changed senza password.",
    "FieldCodes.docx": "16 June 2010",
}


def expected() -> list[tuple[str, str]]:
    if not CORPUS.is_dir():
        return []
    with (CORPUS / "EXPECTED.tsv").open(encoding="utf-8", newline="") as file:
        return [(row[0], row[2]) for row in csv.reader(file, delimiter="\t") if row[0] != "file"]


def squeezed(text: str) -> str:
    return " ".join(text.split())


def text_of(extraction: Extraction) -> str:
    return squeezed(" ".join(page.text for page in extraction.pages))


@pytest.mark.parametrize(("name", "outcome"), expected())
async def test_outcome(shared_pool: ExtractionPool, corpus: Path, name: str, outcome: str) -> None:
    allowed = set(re.sub(r"\(.*\)", "", outcome).replace(" or ", " ").split())
    assert allowed <= {"searchable", *Reason}
    try:
        extraction = await shared_pool.extract(corpus / name, name=name)
    except Rejected as error:
        assert error.reason in allowed, error.detail  # noqa: PT017 - both ends are outcomes
        return
    assert "searchable" in allowed
    text = text_of(extraction)
    assert text
    assert all(page.text == page.text.strip() != "" for page in extraction.pages)
    assert [p.number for p in extraction.pages] == sorted({p.number for p in extraction.pages})
    assert extraction.pages[-1].number <= extraction.page_count
    if name in PHRASES:
        assert PHRASES[name] in text
    for words in elsewhere(corpus / name):
        assert words in text


async def test_there_are_47_files_to_be_found_and_each_has_words_to_be_found_by(
    corpus: Path,
) -> None:
    searchable = [name for name, outcome in expected() if outcome == "searchable"]
    assert len(searchable) == 47
    for name in searchable:
        assert name in PHRASES or any(elsewhere(corpus / name)), name


def elsewhere(path: Path) -> Iterator[str]:
    """Find lines of text in the file with another library."""
    match path.suffix:
        # Too slow for the other library, which also loses words in content controls of the second.
        case ".docx" if path.name not in ("bug65649.docx", "testWORD_2006ml.docx"):
            texts = _word(path)
        case ".pptx":
            texts = _slides(path)
        case ".xlsx" if zipfile.is_zipfile(path) and path.name != "duplicate-filename.xlsx":
            texts = _cells(path)
        case _:
            return
    for text in texts:
        # A field or a break may stand between lines; each line of it is whole.
        for raw in re.split(r"[\n\v\t\r]", text):
            line = squeezed(raw)
            if line and "\u200b" not in line and "\xad" not in line:
                yield line


def _word(path: Path) -> Iterator[str]:
    document = docx.Document(str(path))
    for paragraph in document.paragraphs:
        yield paragraph.text
    for table in document.tables:
        for cell in table._cells:
            yield cell.paragraphs[0].text


def _slides(path: Path) -> Iterator[str]:
    for slide in pptx.Presentation(str(path)).slides:
        for shape in slide.shapes:
            if shape.has_text_frame:
                yield shape.text_frame.text
        if slide.has_notes_slide and slide.notes_slide.notes_text_frame is not None:
            yield slide.notes_slide.notes_text_frame.text


def _cells(path: Path) -> Iterator[str]:
    with python_calamine.CalamineWorkbook.from_path(str(path)) as book:
        for name in book.sheet_names:
            for row in book.get_sheet_by_name(name).to_python():
                for cell in row:
                    match cell:
                        case str():
                            yield cell
                        case dt.date():
                            yield cell.isoformat()[:10]
                        case float() if cell.is_integer():
                            yield str(int(cell))


@pytest.mark.parametrize(
    ("name", "at_least"), [("bug65649.docx", 5_000), ("testWORD_2006ml.docx", 90)]
)
async def test_every_word_of_documents_that_hang_or_escape_other_readers_is_there_within_seconds(
    shared_pool: ExtractionPool, corpus: Path, name: str, at_least: int
) -> None:
    path = corpus / name
    with zipfile.ZipFile(path) as archive:
        raw = archive.read("word/document.xml").decode()
    pieces = [unescape(t) for t in re.findall(r"<w:t(?: [^>]*)?>([^<]*)</w:t>", raw)]
    extraction = await shared_pool.extract(path, name=path.name, limits=Limits(wall_seconds=30))
    bare = re.compile(r"[\s|\xad\u200b]+")
    text = bare.sub("", "".join(page.text for page in extraction.pages))
    assert len(pieces) > at_least
    missing = [p for p in pieces if bare.sub("", p) not in text]
    assert not missing


async def test_titles_and_page_counts(shared_pool: ExtractionPool, corpus: Path) -> None:
    rotated = await shared_pool.extract(corpus / "testPDF_rotated.pdf", name="a.pdf")
    assert (rotated.page_count, rotated.page_count_is_estimate) == (1, False)
    slides = await shared_pool.extract(corpus / "45541_Header.pptx", name="a.pptx")
    assert slides.page_count == len(pptx.Presentation(str(corpus / "45541_Header.pptx")).slides)
    assert (slides.title, slides.page_count_is_estimate) == ("Water Finance", False)
    sheets = await shared_pool.extract(corpus / "clone_sheet.xlsx", name="a.xlsx")
    assert (sheets.page_count, sheets.pages[0].label) == (3, "Arkusz1")
    word = await shared_pool.extract(corpus / "testWORD_2006ml.docx", name="a.docx")
    assert word.page_count_is_estimate


@pytest.mark.parametrize("name", ["no-extension", "wrong.txt", "wrong.pdf"])
async def test_the_content_decides_whatever_the_name(
    shared_pool: ExtractionPool, corpus: Path, name: str
) -> None:
    word = await shared_pool.extract(corpus / "testComment.docx", name=name)
    assert word.media_type.endswith("wordprocessingml.document")
    sheet = await shared_pool.extract(corpus / "test-columnar.xls", name=name)
    assert sheet.media_type == "application/vnd.ms-excel"

"""Scanned pages are read by OCR where that is on, within their own limits, and nothing else is."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pypdfium2 as pdfium
import pytest
from PIL import Image, ImageDraw, ImageFont

from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract import ExtractionPool
from drivefeed.indexer.extract.ocr import CHILD_RSS_BYTES, MEMORY_BYTES, require_ocr
from drivefeed.indexer.model import Limits, Rejected
from integration.indexer.office import write_pdf

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

FAULTY = (sys.executable, str(Path(__file__).with_name("faulty_child.py")))
DOTS_PER_INCH = 150
# A busy machine may take long over a page; what these tests look at is not that.
OCR = Limits(memory_bytes=Limits().memory_bytes + MEMORY_BYTES, ocr_pages=10, ocr_page_seconds=100)


@pytest.fixture(scope="module")
def word() -> str:
    # Letters that look like no other letter and no digit.
    return "".join(random.Random().choices("ACDEFHKMNPRTUVWXY", k=9))


@pytest.fixture
async def reader() -> AsyncIterator[ExtractionPool]:
    async with ExtractionPool(size=1, rss_bytes=CHILD_RSS_BYTES) as pool:
        yield pool


def drawn(text: str, mode: str = "RGB") -> Image.Image:
    image = Image.new(mode, (700, 130), "white")
    ImageDraw.Draw(image).text((40, 35), text, font=ImageFont.load_default(48), fill="black")
    return image


def write_scan(path: Path, texts: list[str]) -> Path:
    """Write a PDF with a picture of a text on each page."""
    first, *others = (drawn(text) for text in texts)
    first.save(path, "PDF", save_all=True, append_images=others, resolution=DOTS_PER_INCH)
    return path


def write_mixed(path: Path, *parts: Path) -> Path:
    """Write the pages of all parts, one after the other."""
    document = pdfium.PdfDocument.new()
    for part in parts:
        with pdfium.PdfDocument(part) as source:
            document.import_pages(source)
    document.save(path)
    document.close()
    return path


def loaded(pool: ExtractionPool) -> bool:
    """Tell whether a child has the libraries of OCR in its memory."""
    return any("cv2" in one.path for pid in pool.pids for one in psutil.Process(pid).memory_maps())


async def test_a_real_scan_is_read_only_where_ocr_is_on(
    reader: ExtractionPool, corpus: Path
) -> None:
    path = corpus / "testOCR.pdf"
    with pytest.raises(Rejected) as caught:
        await reader.extract(path, name=path.name)
    assert caught.value.reason is Reason.NO_TEXT
    assert not loaded(reader)

    extraction = await reader.extract(path, name=path.name, limits=OCR)
    (page,) = extraction.pages
    assert page.text == "Happy New Year 2003!"
    assert page.ocr
    assert loaded(reader)


async def test_scanned_pages_are_read_among_pages_of_text_which_stay_as_they_are(
    reader: ExtractionPool, tmp_path: Path, word: str
) -> None:
    text = write_pdf(tmp_path / "text.pdf", ["a sentence of its own"])
    scan = write_scan(tmp_path / "scan.pdf", [word])
    blank = tmp_path / "blank.pdf"
    empty = pdfium.PdfDocument.new()
    empty.new_page(300, 300)
    empty.save(blank)
    path = write_mixed(tmp_path / "mixed.pdf", text, scan, blank, text)

    without = await reader.extract(path, name=path.name)
    assert [(page.number, page.ocr) for page in without.pages] == [(1, False), (4, False)]
    # A bound of one page suffices: pages of text do not count.
    limits = Limits(memory_bytes=OCR.memory_bytes, ocr_pages=1, ocr_page_seconds=100)
    extraction = await reader.extract(path, name=path.name, limits=limits)
    assert [(page.number, page.ocr) for page in extraction.pages] == [
        (1, False), (2, True), (4, False),
    ]  # fmt: skip
    assert extraction.pages[1].text == word
    assert (extraction.pages[0], extraction.pages[2]) == without.pages
    assert extraction.page_count == 4
    # Page 3 came after the bound and was not looked at.
    assert extraction.unread_pages == 1


async def test_pages_with_text_do_not_even_load_the_models(
    reader: ExtractionPool, tmp_path: Path
) -> None:
    path = write_pdf(tmp_path / "text.pdf", ["one page", "another page"])
    extraction = await reader.extract(path, name=path.name, limits=OCR)
    assert [page.ocr for page in extraction.pages] == [False, False]
    assert not loaded(reader)


async def test_a_long_scan_is_read_up_to_the_bound_and_says_how_much_is_left(
    reader: ExtractionPool, tmp_path: Path, word: str
) -> None:
    path = write_scan(tmp_path / "long.pdf", [f"{word} {n}" for n in range(1, 51)])
    limits = Limits(memory_bytes=OCR.memory_bytes, ocr_pages=2, ocr_page_seconds=100)
    extraction = await reader.extract(path, name=path.name, limits=limits)
    assert [(page.number, page.text) for page in extraction.pages] == [
        (1, f"{word} 1"), (2, f"{word} 2"),
    ]  # fmt: skip
    assert extraction.page_count == 50
    assert extraction.unread_pages == 48


async def test_the_models_are_loaded_once_in_the_life_of_a_child(
    reader: ExtractionPool, tmp_path: Path, word: str
) -> None:
    path = write_scan(tmp_path / "scan.pdf", [word])
    await reader.extract(path, name=path.name, limits=OCR)
    children = reader.pids
    again = await reader.extract(path, name=path.name, limits=OCR)
    assert again.pages[0].text == word
    assert reader.pids == children
    (pid,) = children
    assert psutil.Process(pid).memory_info().rss < CHILD_RSS_BYTES


@pytest.mark.parametrize("ending", ["png", "jpg", "tiff"])
async def test_pictures_are_documents_where_ocr_is_on(
    reader: ExtractionPool, tmp_path: Path, word: str, ending: str
) -> None:
    path = tmp_path / f"picture.{ending}"
    if ending == "tiff":
        drawn(word).save(path, save_all=True, append_images=[drawn("SECOND")])
    elif ending == "png":  # black letters on nothing
        image = drawn(word, "L")
        clear = Image.new("RGBA", image.size, (0, 0, 0, 0))
        clear.putalpha(image.point(lambda light: 255 - light))
        clear.save(path)
    else:  # as cameras do: lying on its side, and a note says so
        exif = Image.Exif()
        exif[0x0112] = 6
        drawn(word).rotate(90, expand=True).save(path, exif=exif, quality=95)
    with pytest.raises(Rejected) as caught:
        await reader.extract(path, name=path.name)
    assert caught.value.reason is Reason.UNSUPPORTED_TYPE

    extraction = await reader.extract(path, name=path.name, limits=OCR)
    expected = [word, "SECOND"] if ending == "tiff" else [word]
    assert [page.text for page in extraction.pages] == expected
    assert extraction.page_count == len(expected)
    assert extraction.media_type == f"image/{ending.replace('jpg', 'jpeg')}"


async def test_a_damaged_picture_is_its_own_fate(
    reader: ExtractionPool, tmp_path: Path, word: str
) -> None:
    whole, half, head = (tmp_path / name for name in ("whole.png", "half.png", "head.png"))
    drawn(word).save(whole)
    raw = whole.read_bytes()
    half.write_bytes(raw[: len(raw) // 2])
    head.write_bytes(raw[:12])
    for path in (half, head):
        with pytest.raises(Rejected) as caught:
            await reader.extract(path, name=path.name, limits=OCR)
        assert caught.value.reason is Reason.CORRUPT


async def test_a_picture_without_words_has_no_text(reader: ExtractionPool, tmp_path: Path) -> None:
    path = tmp_path / "empty.png"
    drawn("").save(path)
    with pytest.raises(Rejected) as caught:
        await reader.extract(path, name=path.name, limits=OCR)
    assert caught.value.reason is Reason.NO_TEXT
    assert "not even by OCR" in caught.value.detail


async def test_too_little_memory_is_said_to_be_that(
    reader: ExtractionPool, tmp_path: Path, word: str
) -> None:
    path = tmp_path / "large.png"
    image = drawn(word).resize((2_000, 372))
    page = Image.new("RGB", (2_000, 2_000), "white")
    page.paste(image)
    page.save(path)
    limits = Limits(memory_bytes=640 << 20, ocr_pages=1, ocr_page_seconds=100)
    with pytest.raises(Rejected) as caught:
        await reader.extract(path, name=path.name, limits=limits)
    assert caught.value.reason is Reason.OUT_OF_MEMORY


async def test_a_page_for_ocr_brings_its_own_time(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("compute_longer\nand a sentence to be read", "utf-8")
    async with ExtractionPool(size=1, command=FAULTY) as pool:
        limits = Limits(cpu_seconds=1, ocr_pages=1, ocr_page_seconds=60)
        extraction = await pool.extract(path, name="a.txt", limits=limits)
    assert "a sentence to be read" in extraction.pages[0].text


async def test_a_child_that_asks_for_time_forever_gets_that_of_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    async with ExtractionPool(size=1, command=FAULTY) as pool:
        path.write_text("good\nand a sentence to be read", "utf-8")
        await pool.extract(path, name="a.txt")  # the child is up
        path.write_text("ask_forever\n", "utf-8")
        limits = Limits(wall_seconds=3, ocr_pages=2, ocr_page_seconds=1)
        with pytest.raises(Rejected) as caught:
            await pool.extract(path, name="a.txt", limits=limits)
    assert caught.value.reason is Reason.EXTRACTION_TIMEOUT
    assert "longer than 5 seconds" in caught.value.detail


def test_a_missing_extra_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    require_ocr()
    monkeypatch.setitem(sys.modules, "rapidocr", None)
    with pytest.raises(NeedsAttention, match=r"Install drivefeed\[ocr\]") as caught:
        require_ocr()
    assert caught.value.reason is Reason.MISCONFIGURED

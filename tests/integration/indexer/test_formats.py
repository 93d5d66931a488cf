"""What is read from each format, on documents written here or by other libraries."""

from __future__ import annotations

import codecs
import datetime as dt
from typing import TYPE_CHECKING

import pptx
import pytest
import python_calamine
import xlsxwriter
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.util import Inches

from integration.indexer.office import paragraph, relationships, word_part, write_docx, write_pdf

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.indexer.extract import ExtractionPool
    from drivefeed.indexer.model import Extraction


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def pool(shared_pool: ExtractionPool) -> ExtractionPool:
    return shared_pool


async def words(pool: ExtractionPool, path: Path) -> str:
    return "\n".join(page.text for page in (await pool.extract(path, name=path.name)).pages)


def run(text: str) -> str:
    return f"<w:r><w:t>{text}</w:t></w:r>"


DOCX_CASES = {
    "a nested table": (
        (
            f"<w:tbl><w:tr><w:tc>{paragraph('outer')}<w:tbl><w:tr><w:tc>{paragraph('inner')}</w:tc>"
            f"<w:tc>{paragraph('next')}</w:tc></w:tr></w:tbl></w:tc></w:tr></w:tbl>"
        ),
        "outer\ninner | next",
    ),
    "a content control": (
        f"<w:sdt><w:sdtContent>{paragraph('controlled')}</w:sdtContent></w:sdt>",
        "controlled",
    ),
    "a content control inside a paragraph": (
        f"<w:p>{run('one ')}<w:sdt><w:sdtContent>{run('two')}</w:sdtContent></w:sdt></w:p>",
        "one two",
    ),
    "a tracked insertion, without what was deleted": (
        (
            f"<w:p>{run('kept ')}<w:ins>{run('inserted')}</w:ins>"
            "<w:del><w:r><w:delText>deleted</w:delText></w:r></w:del></w:p>"
        ),
        "kept inserted",
    ),
    "moved text, once": (
        (
            f"<w:p><w:moveFrom>{run('moved')}</w:moveFrom></w:p>"
            f"<w:p><w:moveTo>{run('moved')}</w:moveTo></w:p>"
        ),
        "moved",
    ),
    "a field's result, without its code": (
        (
            '<w:p><w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>AUTHOR'
            '</w:instrText></w:r><w:r><w:fldChar w:fldCharType="separate"/></w:r>'
            f"{run('the result')}"
            '<w:r><w:fldChar w:fldCharType="end"/></w:r></w:p>'
        ),
        "the result",
    ),
    "a text box, once although it is stored twice": (
        (
            f"<w:p>{run('before')}<w:r><mc:AlternateContent><mc:Choice Requires='wps'><w:drawing>"
            f"<wps:txbx><w:txbxContent>{paragraph('boxed')}</w:txbxContent></wps:txbx></w:drawing>"
            f"</mc:Choice><mc:Fallback><w:pict><v:textbox><w:txbxContent>{paragraph('boxed')}"
            "</w:txbxContent></v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r></w:p>"
        ),
        "before\nboxed",
    ),
    "an old text box": (
        (
            f"<w:p><w:r><w:pict><v:textbox><w:txbxContent>{paragraph('old box')}</w:txbxContent>"
            "</v:textbox></w:pict></w:r></w:p>"
        ),
        "old box",
    ),
    "a link, a tab, a break and a hyphen": (
        (
            f"<w:p><w:hyperlink r:id='r9'>{run('link')}</w:hyperlink><w:r><w:tab/><w:t>tab</w:t>"
            "<w:br/><w:t>non</w:t><w:noBreakHyphen/><w:t>breaking</w:t></w:r></w:p>"
        ),
        "link\ttab\nnon-breaking",
    ),
    "a word in several runs": (f"<w:p>{run('hal')}{run('ves')}</w:p>", "halves"),
    "escaped characters": (paragraph("a &amp; b &lt;c&gt; &#x1F600;"), "a & b <c> \U0001f600"),
}


@pytest.mark.parametrize(("body", "text"), DOCX_CASES.values(), ids=DOCX_CASES.keys())
async def test_docx_reads(pool: ExtractionPool, tmp_path: Path, body: str, text: str) -> None:
    assert await words(pool, write_docx(tmp_path / "a.docx", body)) == text


async def test_docx_reads_headers_once_and_notes_and_comments(
    pool: ExtractionPool, tmp_path: Path
) -> None:
    kinds = ("footer", "footnotes", "endnotes", "comments")
    rows = {f"r{kind}": (kind, f"{kind}.xml") for kind in kinds}
    rows |= {"rh1": ("header", "header1.xml"), "rh2": ("header", "/word/header2.xml")}
    parts = {f"word/{kind}.xml": word_part(paragraph(f"in {kind}"), kind) for kind in kinds}
    header = word_part(paragraph("in header"), "hdr")
    parts |= {"word/header1.xml": header, "word/header2.xml": header}
    parts["word/_rels/document.xml.rels"] = relationships(rows)
    path = write_docx(tmp_path / "a.docx", paragraph("in body"), parts)
    text = await words(pool, path)
    assert text.startswith("in header\nin body")
    assert text.count("in header") == 1
    assert all(f"in {kind}" in text for kind in kinds)


async def test_docx_in_the_strict_namespace_is_read(pool: ExtractionPool, tmp_path: Path) -> None:
    strict = (
        '<w:document xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"><w:body>'
        f"{paragraph('strictly')}</w:body></w:document>"
    )
    path = write_docx(tmp_path / "a.docx", "", {"word/document.xml": strict})
    assert await words(pool, path) == "strictly"


async def test_docx_pages_are_those_of_the_last_rendering_and_an_estimate(
    pool: ExtractionPool, tmp_path: Path
) -> None:
    body = "".join(
        f"<w:p><w:r><w:lastRenderedPageBreak/><w:t>page {n}</w:t></w:r></w:p>" for n in (2, 3)
    )
    path = write_docx(tmp_path / "a.docx", paragraph("page 1") + body)
    extraction = await pool.extract(path, name="a.docx")
    assert [(page.number, page.text) for page in extraction.pages] == [
        (1, "page 1"),
        (2, "page 2"),
        (3, "page 3"),
    ]
    assert extraction.page_count_is_estimate


@pytest.mark.parametrize(("stored", "count"), [(3, 3), (1, 2), (999, 2)])
async def test_docx_believes_the_stored_page_count_only_where_it_is_plausible(
    pool: ExtractionPool, tmp_path: Path, stored: int, count: int
) -> None:
    app = (
        '<Properties xmlns="http://schemas.openxmlformats.org/officeDocument/2006/'
        f'extended-properties"><Pages>{stored}</Pages></Properties>'
    )
    rels = relationships(
        {"r1": ("officeDocument", "word/document.xml"), "r2": ("extended-properties", "app.xml")}
    )
    body = "".join(paragraph("about fifty characters of text make up each line") for _ in range(90))
    path = tmp_path / "a.docx"
    with pytest.warns(UserWarning, match="Duplicate name"):
        write_docx(path, body, {"_rels/.rels": rels, "app.xml": app})
    extraction = await pool.extract(path, name="a.docx")
    if stored == 1:
        # 4,400 characters on one page are possible, so that one is believed.
        count = 1
    assert (extraction.page_count, extraction.page_count_is_estimate) == (count, True)


async def test_pptx_reads_notes_groups_tables_and_chart_titles_by_slide(
    pool: ExtractionPool, tmp_path: Path
) -> None:
    deck = pptx.Presentation()
    deck.core_properties.title = "The deck"
    first = deck.slides.add_slide(deck.slide_layouts[6])
    box = first.shapes.add_textbox(Inches(1), Inches(1), Inches(4), Inches(1))
    box.text_frame.text = "plain box"
    group = first.shapes.add_group_shape()
    inner = group.shapes.add_group_shape()
    deep = inner.shapes.add_textbox(Inches(1), Inches(2), Inches(4), Inches(1))
    deep.text_frame.text = "grouped twice"
    first.notes_slide.notes_text_frame.text = "said aloud"
    deck.slides.add_slide(deck.slide_layouts[6])
    third = deck.slides.add_slide(deck.slide_layouts[6])
    table = third.shapes.add_table(1, 2, Inches(1), Inches(1), Inches(4), Inches(1)).table
    table.cell(0, 0).text, table.cell(0, 1).text = "left cell", "right cell"
    numbers = CategoryChartData()
    numbers.categories = ["Spring", "Autumn"]
    numbers.add_series("Harvest", (1, 2))
    area = (Inches(1), Inches(3), Inches(4), Inches(3))
    chart = third.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *area, numbers).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "Tonnes of apples"
    path = tmp_path / "a.pptx"
    deck.save(str(path))

    extraction = await pool.extract(path, name="a.pptx")
    assert (extraction.page_count, extraction.page_count_is_estimate) == (3, False)
    assert extraction.title == "The deck"
    assert [page.number for page in extraction.pages] == [1, 3]
    one, three = (page.text for page in extraction.pages)
    assert all(text in one for text in ("plain box", "grouped twice", "said aloud"))
    assert "left cell | right cell" in three
    assert all(text in three for text in ("Tonnes of apples", "Harvest", "Spring", "Autumn"))


@pytest.fixture
def workbook(tmp_path: Path) -> Path:
    path = tmp_path / "a.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet("Things & more")
        day = book.add_format({"num_format": "yyyy-mm-dd"})
        moment = book.add_format({"num_format": '"at" d/m/yy h:mm:ss'})
        money = book.add_format({"num_format": '[Red]#,##0.00 "days";[Blue]-0'})
        sheet.write_row(0, 0, ["Name", "", "Number"])
        sheet.write_row(1, 0, ["apple", None, 3.0])
        sheet.write_row(2, 5, [0.1 + 0.2, -1234567.5, 1e20, True])
        sheet.write_datetime(3, 0, dt.datetime(2024, 2, 29), day)  # noqa: DTZ001 - as workbooks
        sheet.write_datetime(3, 1, dt.datetime(2024, 2, 29, 13, 5, 59), moment)  # noqa: DTZ001
        sheet.write_number(3, 2, 45351.25, money)
        sheet.write_rich_string(4, 0, "rich ", book.add_format({"bold": True}), "text")
        sheet.write_formula(5, 0, "=1+1", None, 2)
        sheet.write_formula(6, 0, '="a"&"b"', None, "ab")
        sheet.write_comment(0, 0, "a remark")
        sheet.insert_textbox(8, 0, "in a box")
        book.add_worksheet("Empty")
        book.add_worksheet("Last").write(0, 0, "the end")
    return path


async def test_xlsx_reads_values_dates_comments_and_boxes_by_sheet(
    pool: ExtractionPool, workbook: Path
) -> None:
    extraction = await pool.extract(workbook, name="a.xlsx")
    assert (extraction.page_count, extraction.page_count_is_estimate) == (3, False)
    labels = [(page.number, page.label) for page in extraction.pages]
    assert labels == [(1, "Things & more"), (3, "Last")]
    lines = extraction.pages[0].text.split("\n")
    assert lines[:7] == [
        "Name | Number",
        "apple | 3",
        "0.3 | -1234567.5 | 1e+20 | TRUE",
        "2024-02-29 | 2024-02-29 13:05:59 | 45351.25",
        "rich text",
        "2",
        "ab",
    ]
    assert "a remark" in extraction.pages[0].text
    assert "in a box" in extraction.pages[0].text


async def test_xlsx_agrees_with_another_reader_on_every_text(
    pool: ExtractionPool, workbook: Path
) -> None:
    ours = await words(pool, workbook)
    with python_calamine.CalamineWorkbook.from_path(str(workbook)) as book:
        for name in book.sheet_names:
            for row in book.get_sheet_by_name(name).to_python():
                for cell in row:
                    assert not isinstance(cell, str) or cell in ours


async def test_a_pdf_of_300_pages_keeps_every_page_and_its_number(
    pool: ExtractionPool, tmp_path: Path
) -> None:
    path = write_pdf(
        tmp_path / "a.pdf", [f"sentence of page {n}" if n % 50 else "" for n in range(300)]
    )
    extraction = await pool.extract(path, name="a.pdf")
    assert (extraction.page_count, extraction.page_count_is_estimate) == (300, False)
    assert {page.number: page.text for page in extraction.pages} == {
        n + 1: f"sentence of page {n}" for n in range(300) if n % 50
    }


async def test_one_very_long_sheet_arrives_whole(pool: ExtractionPool, tmp_path: Path) -> None:
    path = tmp_path / "a.xlsx"
    rows = [f"row {n} " + "of a sheet that is longer than one message " * 20 for n in range(4_000)]
    with xlsxwriter.Workbook(str(path), {"constant_memory": True}) as book:
        book.add_worksheet("First").write(0, 0, "before")
        sheet = book.add_worksheet("Long")
        for number, row in enumerate(rows):
            sheet.write(number, 0, row)
        book.add_worksheet("Last").write(0, 0, "after")
    extraction = await pool.extract(path, name="a.xlsx")
    before, long, after = extraction.pages
    assert (before.text, after.text) == ("before", "after")
    assert (long.number, long.label) == (2, "Long")
    assert long.text.split("\n") == [row.strip() for row in rows]


async def test_html_reads_what_is_seen(pool: ExtractionPool, tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_text(
        "<html lang='de'><head><title>The title</title><style>p {}</style></head><body><script>no()"
        "</script><p>One<b>word</b></p><p>two</p><ul><li>three</li></ul><table><tr><td>a</td>"
        "<td>b</td></tr></table>x<br>y &amp; z<template>hidden</template></body></html>",
        "utf-8",
    )
    extraction = await pool.extract(path, name="a.html")
    assert extraction.pages[0].text == "The title\nOneword\ntwo\nthree\na b\nx\ny & z"
    assert (extraction.title, extraction.language) == ("The title", "de")


@pytest.mark.parametrize("encoding", ["windows-1251", "utf-8", "utf-16"])
async def test_html_is_decoded_as_it_declares_or_marks(
    pool: ExtractionPool, tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "a.html"
    declared = "" if encoding == "utf-16" else f"<meta charset='{encoding}'>"
    path.write_bytes(f"<html><head>{declared}</head><p>Привет, мир</p></html>".encode(encoding))
    assert await words(pool, path) == "Привет, мир"


SAMPLE = "Żółta łódź płynie po jeziorze, a księżyc świeci jasno. " * 20


@pytest.mark.parametrize(
    "raw",
    [
        SAMPLE.encode(),
        codecs.BOM_UTF8 + SAMPLE.encode(),
        SAMPLE.encode("utf-16"),
        codecs.BOM_UTF16_BE + SAMPLE.encode("utf-16-be"),
        SAMPLE.encode("utf-16-le"),
        SAMPLE.encode("utf-32"),
        SAMPLE.encode("cp1250"),
    ],
    ids=["utf-8", "bom", "utf-16", "utf-16-be", "no bom", "utf-32", "cp1250"],
)
@pytest.mark.parametrize("extension", ["txt", "md", "csv"])
async def test_text_is_decoded(
    pool: ExtractionPool, tmp_path: Path, raw: bytes, extension: str
) -> None:
    path = tmp_path / f"a.{extension}"
    path.write_bytes(raw)
    assert await words(pool, path) == SAMPLE.strip()


async def test_long_text_is_cut_into_pages_without_losing_a_line(
    pool: ExtractionPool, tmp_path: Path
) -> None:
    lines = [f"line {n} of a long file" for n in range(1_000)]
    path = tmp_path / "a.txt"
    path.write_text("\n".join(lines), "utf-8")
    extraction = await pool.extract(path, name="a.txt")
    assert extraction.page_count_is_estimate
    assert extraction.page_count == 8  # 23 thousand characters
    assert "\n".join(page.text for page in extraction.pages).split("\n") == lines


@pytest.mark.parametrize(
    ("rtf", "text"),
    [
        (r"{\rtf1\ansi caf\'e9 \u8364?5\par next}", "café €5\nnext"),
        (r"{\rtf1\ansi\uc2\u26085 ab\u26412\'93\'fa!}", "日本!"),
        (r"{\rtf1\ansi\uc1\u-10179?\u-8704?}", "\U0001f600"),
        (r"{\rtf1\ansi{\fonttbl{\f0 Arial;}{\f1\fcharset204 Arial;}}\f1 \'cf\'f0\'e8}", "При"),
        (r"{\rtf1\ansi{\fonttbl{\f1\fcharset128 M;}}\f1 \'93\'fa\'96\'7b}", "日本"),
        (
            r"{\rtf1\ansi{\header\pard at the top\par}body{\footnote a note}}",
            "at the top\n\nbody\na note",
        ),
        (r"{\rtf1{\shp{\*\shpinst{\sp{\sn x}{\sv y}}{\shptxt boxed\par}}}}", "boxed"),
        (r"{\rtf1 {\field{\*\fldinst HYPERLINK x}{\fldrslt shown}}}", "shown"),
        (r"{\rtf1 {\pict\wmetafile8 0102ff}{\*\unknown secret}seen}", "seen"),
        ("{\\rtf1 a\\bin4 {}\\}b}", "ab"),
        (r"{\rtf1 {\upr{plain}{\*\ud{unicode}}}}", "unicode"),
        (r"{\rtf1\trowd one\cell two\cell\row}", "one | two"),
        (r"{\rtf1 {\b bold {\i both}} end", "bold both end"),
        (r"{\rtf1\ansi\ansicpg99999 odd}", "odd"),
        (r"{\rtf1 a\'zzb\\c \{d\}}", "a'zzb\\c {d}"),
    ],
)
async def test_rtf_reads(pool: ExtractionPool, tmp_path: Path, rtf: str, text: str) -> None:
    path = tmp_path / "a.rtf"
    path.write_bytes(rtf.encode("ascii"))
    assert await words(pool, path) == text


async def test_rtf_keeps_its_title(pool: ExtractionPool, tmp_path: Path) -> None:
    path = tmp_path / "a.rtf"
    path.write_bytes(rb"{\rtf1{\info{\title A \'e9tude}{\author X}}body}")
    extraction: Extraction = await pool.extract(path, name="a.rtf")
    assert (extraction.title, extraction.pages[0].text) == ("A étude", "body")

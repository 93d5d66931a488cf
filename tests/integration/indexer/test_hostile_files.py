"""Files made to harm, or damaged on their way: each becomes a reason, quickly."""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import TYPE_CHECKING

import pytest
import xlsxwriter

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.model import Limits, Rejected
from integration.indexer.office import W, paragraph, word_part, write_docx, write_pdf

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.indexer.extract import ExtractionPool


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture
def pool(shared_pool: ExtractionPool) -> ExtractionPool:
    return shared_pool


async def rejected(
    pool: ExtractionPool, path: Path, name: str | None = None, limits: Limits | None = None
) -> Reason:
    with pytest.raises(Rejected) as caught:
        await pool.extract(path, name=name or path.name, limits=limits)
    assert caught.value.detail.endswith((".", ")"))
    return caught.value.reason


@pytest.mark.parametrize("name", ["a.txt", "a.pdf", "a.docx", "a.html", "a.bin"])
async def test_an_empty_file_has_no_text(pool: ExtractionPool, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.touch()
    assert await rejected(pool, path) is Reason.NO_TEXT


@pytest.mark.parametrize("name", ["a.txt", "a.md", "a.html", "a.rtf"])
async def test_blanks_are_no_text(pool: ExtractionPool, tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"{\\rtf1 }" if name == "a.rtf" else b" \n\t \xc2\xa0\n")
    assert await rejected(pool, path) is Reason.NO_TEXT


@pytest.mark.parametrize("name", ["a.pdf", "a.docx", "a.txt", "a.xlsx"])
@pytest.mark.parametrize("magic", [b"MZ\x90\x00\x03\x00", b"\x7fELF\x02\x01\x01\x00"])
async def test_a_renamed_program_is_unsupported(
    pool: ExtractionPool, tmp_path: Path, name: str, magic: bytes
) -> None:
    path = tmp_path / name
    path.write_bytes(magic + bytes(range(256)) * 40)
    assert await rejected(pool, path) is Reason.UNSUPPORTED_TYPE


@pytest.mark.parametrize("part", [0.1, 0.5, 0.95])
async def test_a_truncated_docx_is_corrupt(
    pool: ExtractionPool, tmp_path: Path, part: float
) -> None:
    path = write_docx(tmp_path / "a.docx", paragraph("words " * 5_000))
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * part)])
    assert await rejected(pool, path) is Reason.CORRUPT


@pytest.mark.parametrize("content", [b"no zip at all, but words", b"PK\x03\x04 and then nonsense"])
async def test_what_is_only_called_a_docx_is_corrupt(
    pool: ExtractionPool, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(content)
    assert await rejected(pool, path) is Reason.CORRUPT


async def test_a_zip_without_a_document_called_docx_is_corrupt_and_called_zip_unsupported(
    pool: ExtractionPool, tmp_path: Path
) -> None:
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("readme.txt", "words")
    assert await rejected(pool, path, "a.docx") is Reason.CORRUPT
    assert await rejected(pool, path, "a.zip") is Reason.UNSUPPORTED_TYPE


async def test_damage_inside_a_part_is_found(pool: ExtractionPool, tmp_path: Path) -> None:
    path = write_docx(tmp_path / "a.docx", "<w:p><w:r><w:t>never closed")
    assert await rejected(pool, path) is Reason.CORRUPT


def bomb(path: Path, size: int, declared: int) -> Path:
    """Write a DOCX whose document holds `size` letters, and whose directory says `declared`."""
    body = word_part("<w:body><w:p><w:r><w:t>%</w:t></w:r></w:p></w:body>").encode()
    head, tail = body.split(b"%")
    press = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = bytearray(press.compress(head))
    block = b"a" * (1 << 20)
    crc = zlib.crc32(head)
    for _ in range(size >> 20):
        packed += press.compress(block)
        crc = zlib.crc32(block, crc)
    packed += press.compress(tail) + press.flush()
    crc = zlib.crc32(tail, crc)
    write_docx(path, "")
    with zipfile.ZipFile(path) as archive:
        kept = {i.filename: archive.read(i) for i in archive.infolist()}
    del kept["word/document.xml"]
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in kept.items():
            archive.writestr(name, content)
        start = archive.start_dir
    raw = path.read_bytes()
    end = raw.rindex(b"PK\x05\x06")
    directory = raw[start:end]
    name = b"word/document.xml"
    common = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, crc, len(packed), declared, len(name), 0)
    member = b"PK\x03\x04" + common + name + bytes(packed)
    entry = b"PK\x01\x02\x14\x00" + common + struct.pack("<HHHII", 0, 0, 0, 0, start) + name
    count = len(kept) + 1
    directory += entry
    path.write_bytes(
        raw[:start]
        + member
        + directory
        + b"PK\x05\x06"
        + struct.pack("<HHHHIIH", 0, 0, count, count, len(directory), start + len(member), 0)
    )
    return path


async def test_a_zip_bomb_is_too_large_by_what_it_declares(
    pool: ExtractionPool, tmp_path: Path
) -> None:
    # 4 GiB less a bit is what a plain ZIP can declare; only the directory is looked at.
    path = bomb(tmp_path / "a.docx", 8 << 20, declared=0xFFFFFFF0)
    assert await rejected(pool, path) is Reason.TOO_LARGE


async def test_a_zip_bomb_of_five_gigabytes_is_too_large(
    pool: ExtractionPool, tmp_path: Path
) -> None:
    path = tmp_path / "a.docx"
    write_docx(path, "")
    with zipfile.ZipFile(path) as archive:
        kept = {i.filename: archive.read(i) for i in archive.infolist()}
    # Five gigabytes are declared in a ZIP64 field, as a real bomb of that size does.
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in kept.items():
            archive.writestr(name, content)
        archive.getinfo("word/document.xml").file_size = 5 << 30
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("word/document.xml").file_size == 5 << 30
    assert await rejected(pool, path) is Reason.TOO_LARGE


async def test_a_bomb_that_declares_little_is_stopped_by_what_comes_out(
    pool: ExtractionPool, tmp_path: Path
) -> None:
    path = bomb(tmp_path / "a.docx", 200 << 20, declared=1_000)
    assert await rejected(pool, path) is Reason.CORRUPT


async def test_an_honest_document_with_too_much_text_is_too_large(
    pool: ExtractionPool, tmp_path: Path
) -> None:
    path = write_docx(tmp_path / "a.docx", paragraph("words " * 50_000))
    assert await rejected(pool, path, limits=Limits(text_bytes=100_000)) is Reason.TOO_LARGE
    assert await rejected(pool, path, limits=Limits(unzipped_bytes=9_000)) is Reason.TOO_LARGE
    assert await rejected(pool, path, limits=Limits(file_bytes=500)) is Reason.TOO_LARGE


@pytest.mark.parametrize("part", ["word/document.xml", "word/header1.xml", "[Content_Types].xml"])
async def test_entity_bombs_are_refused_in_any_part(
    pool: ExtractionPool, tmp_path: Path, part: str
) -> None:
    entities = "".join(f'<!ENTITY e{level} "{f"&e{level - 1};" * 10}">' for level in range(1, 12))
    evil = (
        f'<?xml version="1.0"?><!DOCTYPE w:hdr [<!ENTITY e0 "lol">{entities}]>'
        f'<w:hdr xmlns:w="{W}"><w:p><w:r><w:t>&e11;</w:t></w:r></w:p></w:hdr>'
    )
    rels = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
        'relationships/header" Target="header1.xml"/></Relationships>'
    )
    path = tmp_path / "a.docx"
    write_docx(path, paragraph("words"), {"word/_rels/document.xml.rels": rels})
    with zipfile.ZipFile(path) as archive:
        kept = {i.filename: archive.read(i) for i in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**kept, part: evil.encode()}.items():
            archive.writestr(name, content)
    assert await rejected(pool, path) is Reason.CORRUPT


async def test_external_entities_read_no_file(pool: ExtractionPool, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("the secret")
    evil = (
        f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY s SYSTEM "file://{secret}">]>'
        f'<w:document xmlns:w="{W}"><w:body><w:p><w:r><w:t>&s;</w:t></w:r></w:p></w:body>'
        "</w:document>"
    )
    path = write_docx(tmp_path / "a.docx", "", {})
    with zipfile.ZipFile(path) as archive:
        kept = {i.filename: archive.read(i) for i in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in {**kept, "word/document.xml": evil.encode()}.items():
            archive.writestr(name, content)
    assert await rejected(pool, path) is Reason.CORRUPT


async def test_tables_nested_a_thousand_deep_are_read(pool: ExtractionPool, tmp_path: Path) -> None:
    depth = 1_000
    body = (
        "<w:tbl><w:tr><w:tc>" * depth
        + paragraph("the innermost cell")
        + "</w:tc></w:tr></w:tbl>" * depth
    )
    path = write_docx(tmp_path / "a.docx", body)
    extraction = await pool.extract(path, name="a.docx")
    assert "the innermost cell" in extraction.pages[0].text


async def test_a_pdf_behind_a_password_is_encrypted(pool: ExtractionPool, tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", ["words"], password="a secret")
    assert await rejected(pool, path) is Reason.ENCRYPTED


async def test_a_pdf_with_an_empty_password_is_open(pool: ExtractionPool, tmp_path: Path) -> None:
    path = write_pdf(tmp_path / "a.pdf", ["words that may not be printed"], password="")
    extraction = await pool.extract(path, name="a.pdf")
    assert extraction.pages[0].text == "words that may not be printed"


async def test_an_xls_behind_a_password_is_encrypted(
    pool: ExtractionPool, tmp_path: Path, corpus: Path
) -> None:
    raw = bytearray((corpus / "test-columnar.xls").read_bytes())
    begin = raw.index(b"\x09\x08\x10\x00")  # the BOF record of the workbook
    raw[begin + 20 : begin + 22] = b"\x2f\x00"  # makes a FILEPASS record of the one behind it
    path = tmp_path / "a.xls"
    path.write_bytes(raw)
    assert await rejected(pool, path) is Reason.ENCRYPTED


async def test_damaged_pdfs_are_corrupt(pool: ExtractionPool, tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"%PDF-1.7\n" + b"\x00\xff nonsense" * 500)
    assert await rejected(pool, path) is Reason.CORRUPT


@pytest.mark.parametrize("size", [100, 600, 5_000])
async def test_a_damaged_ole_file_called_xls_is_corrupt(
    pool: ExtractionPool, tmp_path: Path, size: int
) -> None:
    path = tmp_path / "a.xls"
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + b"\xff" * size)
    assert await rejected(pool, path) is Reason.CORRUPT


async def test_a_workbook_with_a_cell_in_the_last_corner_is_read(
    pool: ExtractionPool, tmp_path: Path
) -> None:

    path = tmp_path / "a.xlsx"
    with xlsxwriter.Workbook(str(path)) as book:
        sheet = book.add_worksheet()
        sheet.write(0, 0, "first")
        sheet.write(1_048_575, 16_383, "last")
    extraction = await pool.extract(path, name="a.xlsx")
    assert extraction.pages[0].text == "first\nlast"


async def test_a_gigantic_sheet_is_bounded_before_it_fills_memory(
    pool: ExtractionPool, tmp_path: Path
) -> None:

    path = tmp_path / "a.xlsx"
    with xlsxwriter.Workbook(str(path), {"constant_memory": True}) as book:
        sheet = book.add_worksheet()
        for row in range(20_000):
            sheet.write(row, 0, f"row {row} of very many")
    assert await rejected(pool, path, limits=Limits(text_bytes=100_000)) is Reason.TOO_LARGE
    whole = await pool.extract(path, name="a.xlsx")
    assert whole.pages[0].text.endswith("row 19999 of very many")


async def test_after_all_this_the_same_child_still_reads(
    pool: ExtractionPool, tmp_path: Path
) -> None:
    good = write_docx(tmp_path / "good.docx", paragraph("a good sentence"))
    await pool.extract(good, name="good.docx")
    pids = pool.pids
    bad = tmp_path / "bad.docx"
    bad.write_bytes(b"PK\x03\x04 nonsense")
    assert await rejected(pool, bad) is Reason.CORRUPT
    await pool.extract(good, name="good.docx")
    assert pool.pids == pids, "a verdict about a file is no reason to lose a warm child"

"""Manuscripts as PDF, set in Helvetica on A4 through pdfium."""

from __future__ import annotations

import ctypes
import re
from io import BytesIO
from textwrap import wrap
from typing import Any

from drivefeed.sample.containers import WRITTEN_AT
from drivefeed.sample.manuscript import (
    Aside,
    Block,
    Bullets,
    Heading,
    PageBreak,
    Paragraph,
    Table,
    header_of,
)

# All lengths are in points, 72 to the inch.
_PAGE_WIDTH, _PAGE_HEIGHT = 595.0, 842.0
_MARGIN, _TOP, _BOTTOM = 57.0, 775.0, 70.0
_TEXT_WIDTH = _PAGE_WIDTH - 2 * _MARGIN
_BODY, _SMALL = 11.0, 8.0
_HEADING_SIZES = {1: 20.0, 2: 14.0}
_LEADING = 1.35
# Helvetica's letters are half as wide as high on average; lines are ragged, so that is enough.
_WIDTH_OF_A_LETTER = 0.5


def render_pdf(blocks: list[Block]) -> bytes:
    """Return a PDF with the running head and the page's number on each page."""
    import pypdfium2

    document = pypdfium2.PdfDocument.new()
    try:
        composer = _Composer(document, header_of(blocks))
        for block in blocks:
            composer.set(block)
        composer.end_page()
        target = BytesIO()
        document.save(target)
    finally:
        document.close()
    return _with_fixed_identity(target.getvalue())


class _Composer:
    """Puts lines on pages from top to bottom; `_y` is the baseline of the line to come."""

    def __init__(self, document: Any, header: str) -> None:
        self._document = document
        self._header = header
        self._page: Any = None
        self._y = _TOP
        self._pages = 0

    def set(self, block: Block) -> None:
        """Set one block, on a new page where the old one is full."""
        match block:
            case Heading(level, text):
                self._y -= 6
                self._lines([text], size=_HEADING_SIZES[level], font="Helvetica-Bold")
            case Paragraph(text):
                self._lines(wrap(text, _letters(_TEXT_WIDTH)))
            case Bullets(items):
                for item in items:
                    self._lines(wrap(f"• {item}", _letters(_TEXT_WIDTH), subsequent_indent="  "))
            case Table(rows):
                for number, row in enumerate(rows):
                    self._row(row, "Helvetica-Bold" if number == 0 else "Helvetica")
                self._y -= _BODY / 2
            case PageBreak():
                self.end_page()
            case Aside():
                pass  # the running head is set with each page; nothing else applies on paper

    def end_page(self) -> None:
        """Finish the page under way, if there is one."""
        if self._page is not None:
            self._page.gen_content()
            self._page.close()
            self._page = None

    def _lines(self, lines: list[str], *, size: float = _BODY, font: str = "Helvetica") -> None:
        for line in lines:
            self._make_room(size)
            self._text(line, _MARGIN, size, font)
            self._y -= size * _LEADING
        self._y -= size * (_LEADING - 1)

    def _row(self, cells: tuple[str, ...], font: str) -> None:
        width = _TEXT_WIDTH / len(cells)
        columns = [wrap(cell, _letters(width) - 2) or [""] for cell in cells]
        height = max(len(column) for column in columns)
        self._make_room(_BODY * _LEADING * height)
        top = self._y
        for number, column in enumerate(columns):
            for offset, line in enumerate(column):
                self._y = top - offset * _BODY * _LEADING
                self._text(line, _MARGIN + number * width, _BODY, font)
        self._y = top - height * _BODY * _LEADING - 3

    def _make_room(self, height: float) -> None:
        if self._page is not None and self._y - height < _BOTTOM:
            self.end_page()
        if self._page is None:
            self._page = self._document.new_page(_PAGE_WIDTH, _PAGE_HEIGHT)
            self._pages += 1
            self._y = _TOP + 35
            self._text(self._header, _MARGIN, _SMALL, "Helvetica-Oblique")
            self._y = _BOTTOM - 35
            self._text(f"Page {self._pages}", _PAGE_WIDTH - _MARGIN - 35, _SMALL, "Helvetica")
            self._y = _TOP

    def _text(self, text: str, x: float, size: float, font: str) -> None:
        import pypdfium2.raw as pdfium

        encoded = f"{text}\0".encode("utf-16-le")
        wide = (ctypes.c_ushort * (len(encoded) // 2)).from_buffer_copy(encoded)
        line = pdfium.FPDFPageObj_NewTextObj(self._document, font.encode("ascii"), size)
        pdfium.FPDFText_SetText(line, wide)
        pdfium.FPDFPageObj_Transform(line, 1, 0, 0, 1, x, self._y)
        pdfium.FPDFPage_InsertObject(self._page, line)


def _letters(width: float) -> int:
    return int(width / (_BODY * _WIDTH_OF_A_LETTER))


def _with_fixed_identity(pdf: bytes) -> bytes:
    """Replace the creation date and the file's id, which pdfium takes from the clock.

    Both keep their length, because the cross-reference table counts bytes.
    """
    date = WRITTEN_AT.strftime("D:%Y%m%d%H%M%S").encode("ascii")
    pdf = re.sub(rb"(/CreationDate\()D:\d{14}", lambda found: found[1] + date, pdf)
    return re.sub(
        rb"(/ID\[)<[0-9A-F]{32}><[0-9A-F]{32}>",
        lambda found: found[1] + b"<" + b"5" * 32 + b"><" + b"5" * 32 + b">",
        pdf,
    )

"""PDF through PDFium, page by page, so that one page is in memory at a time."""

from __future__ import annotations

import ctypes
import re
from typing import TYPE_CHECKING, Any, Final

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract.pages import Draft
from drivefeed.indexer.model import Rejected

if TYPE_CHECKING:
    from pathlib import Path

    from drivefeed.indexer.model import Limits

# FPDF_ERR_PASSWORD and FPDF_ERR_SECURITY of fpdfview.h.
_LOCKED: Final = frozenset({4, 5})
# PDFium marks a word's hyphen at the end of a line with one of these.
_HYPHENATION: Final = re.compile("[\x02\ufffe]\r?\n?")

_MOST_ANNOTATIONS: Final = 5_000


def read_pdf(path: Path, *, media_type: str, limits: Limits) -> Draft:
    """Read a PDF; one that opens with an empty password is open.

    A page that can't be read counts and is left out; when none can, the file is corrupt.

    Raises:
        Rejected: `encrypted`, `corrupt`, `too_large`.
    """
    import pypdfium2 as pdfium

    draft = Draft(media_type, limits)
    document = _opened(path)
    try:
        count = len(document)
        if count > limits.pages:
            raise Rejected(Reason.TOO_LARGE, f"The PDF has {count:,} pages.")
        damaged = 0
        for index in range(count):
            try:
                draft.add(_page_text(document, index))
            except pdfium.PdfiumError:
                damaged += 1
                draft.add("")
        if damaged and damaged == count:
            raise Rejected(Reason.CORRUPT, "The PDF is damaged: none of its pages can be read.")
        draft.title = document.get_metadata_value("Title")
    finally:
        document.close()
    return draft


def count_pages(path: Path) -> int:
    """Count the pages of a PDF as `read_pdf` does.

    Raises:
        Rejected: `encrypted`, `corrupt`.
    """
    document = _opened(path)
    try:
        return len(document)
    finally:
        document.close()


def _opened(path: Path) -> Any:
    import pypdfium2 as pdfium

    try:
        return pdfium.PdfDocument(path)
    except pdfium.PdfiumError as error:
        if error.err_code in _LOCKED:
            raise Rejected(Reason.ENCRYPTED, "The PDF opens only with a password.") from error
        raise Rejected(Reason.CORRUPT, "The PDF is damaged and can't be opened.") from error


def _page_text(document: Any, index: int) -> str:
    page = document[index]
    try:
        text_page = page.get_textpage()
        try:
            text = _HYPHENATION.sub("", text_page.get_text_range())
        finally:
            text_page.close()
        return "\n".join((text, *_annotations(page)))
    finally:
        page.close()


def _annotations(page: Any) -> list[str]:
    """Read what people wrote onto the page: comments, notes, and the values of form fields."""
    from pypdfium2 import raw

    texts: dict[str, None] = {}
    for index in range(min(raw.FPDFPage_GetAnnotCount(page), _MOST_ANNOTATIONS)):
        annotation = raw.FPDFPage_GetAnnot(page, index)
        if not annotation:
            continue
        kind = raw.FPDFAnnot_GetSubtype(annotation)
        if kind not in (raw.FPDF_ANNOT_LINK, raw.FPDF_ANNOT_POPUP):
            key = b"V" if kind == raw.FPDF_ANNOT_WIDGET else b"Contents"
            if text := _string(annotation, key).strip():
                texts[text] = None
        raw.FPDFPage_CloseAnnot(annotation)
    return list(texts)


def _string(annotation: Any, key: bytes) -> str:
    from pypdfium2 import raw

    size = raw.FPDFAnnot_GetStringValue(annotation, key, None, 0)
    buffer = (ctypes.c_ushort * (size // 2 + 1))()
    raw.FPDFAnnot_GetStringValue(annotation, key, buffer, size)
    return bytes(buffer)[: max(0, size - 2)].decode("utf-16-le", errors="replace")

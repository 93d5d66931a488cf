"""PDF through PDFium, page by page, so that one page is in memory at a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

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


def read_pdf(path: Path, *, media_type: str, limits: Limits) -> Draft:
    """Read a PDF; one that opens with an empty password is open.

    A page that can't be read counts and is left out; when none can, the file is corrupt.

    Raises:
        Rejected: `encrypted`, `corrupt`, `too_large`.
    """
    import pypdfium2 as pdfium

    draft = Draft(media_type, limits)
    try:
        document = pdfium.PdfDocument(path)
    except pdfium.PdfiumError as error:
        if error.err_code in _LOCKED:
            raise Rejected(Reason.ENCRYPTED, "The PDF opens only with a password.") from error
        raise Rejected(Reason.CORRUPT, "The PDF is damaged and can't be opened.") from error
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


def _page_text(document: object, index: int) -> str:
    page = document[index]  # type: ignore[index]  # pypdfium2 has no types
    try:
        text_page = page.get_textpage()
        try:
            return _HYPHENATION.sub("", text_page.get_text_range())
        finally:
            text_page.close()
    finally:
        page.close()

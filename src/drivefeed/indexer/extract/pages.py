"""How pages are gathered: within bounds, cleaned, and cut where a format has none."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.model import CHARACTERS_PER_PAGE, Extraction, Page, Rejected

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drivefeed.indexer.model import Limits

# Not printable, and refused or mangled further on (JSON, terminals, databases).
# Soft hyphens and zero-width blanks hide inside words and keep a search from finding them.
_UNWANTED: Final = re.compile(
    "[\x00-\x08\x0b\x0e-\x1f\x7f\xad\u200b\u2060\ud800-\udfff\ufeff\ufffe\uffff]"
)
_TRAILING: Final = re.compile(r"[ \t]+(?=\n)")
_BLANK_LINES: Final = re.compile(r"\n{3,}")


def clean(text: str) -> str:
    """Remove control characters, trailing blanks and runs of empty lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0c", "\n")
    text = text.replace("\xa0", " ")
    text = _UNWANTED.sub("", text)
    return _BLANK_LINES.sub("\n\n", _TRAILING.sub("", text)).strip()


class Draft:
    """An extraction in the making: takes pages, counts, and stops at the limits."""

    def __init__(self, media_type: str, limits: Limits) -> None:
        self.media_type = media_type
        self.page_count_is_estimate = False
        self.title: str | None = None
        self.language: str | None = None
        self.unread_pages = 0
        self._limits = limits
        self._pages: list[Page] = []
        self._count = 0
        self._bytes = 0

    def add(self, text: str, label: str = "") -> None:
        """Append the next page; one without text counts, but is not kept.

        Raises:
            Rejected: `too_large` beyond the limit of pages or of text.
        """
        self._count += 1
        if self._count > self._limits.pages:
            raise Rejected(
                Reason.TOO_LARGE,
                f"The document has more than {self._limits.pages:,} pages or sheets.",
            )
        text = clean(text)
        if not text:
            return
        self._bytes += len(text.encode())
        self.check_size(0)
        self._pages.append(Page(self._count, text, label))

    @property
    def blank(self) -> list[int]:
        """The numbers of the pages that have no text so far."""
        with_text = {page.number for page in self._pages}
        return [number for number in range(1, self._count + 1) if number not in with_text]

    def fill(self, number: int, text: str) -> None:
        """Give a blank page the text that was read from its picture, if there was any.

        Raises:
            Rejected: `too_large`.
        """
        text = clean(text)
        if text:
            self._bytes += len(text.encode())
            self.check_size(0)
            self._pages.append(Page(number, text, ocr=True))

    def add_all(self, texts: Iterable[str]) -> None:
        """Append pages in order."""
        for text in texts:
            self.add(text)

    def check_size(self, pending: int) -> None:
        """Refuse early, while `pending` characters of the next page wait in memory.

        Raises:
            Rejected: `too_large`.
        """
        if self._bytes + pending > self._limits.text_bytes:
            megabytes = self._limits.text_bytes / 1e6
            raise Rejected(
                Reason.TOO_LARGE, f"The document holds more than {megabytes:,.0f} MB of text."
            )

    def finish(self) -> Extraction:
        """Return the extraction.

        Raises:
            Rejected: `no_text` when no page had any.
        """
        if not self._pages:
            raise Rejected(
                Reason.NO_TEXT,
                "No text was found, not even by OCR."
                if self._limits.ocr_pages
                else "No text was found. It may be empty, or hold only pictures or scans.",
            )
        return Extraction(
            media_type=self.media_type,
            pages=tuple(sorted(self._pages, key=lambda page: page.number)),
            page_count=self._count,
            page_count_is_estimate=self.page_count_is_estimate,
            title=(clean(self.title)[:500] or None) if self.title else None,
            language=self.language or None,
            unread_pages=self.unread_pages,
        )


def split_evenly(text: str, count: int | None = None) -> list[str]:
    """Cut text into `count` pages of about the same length, at line ends where there are any.

    Args:
        text: All of it.
        count: Pages to make; by default one for each `CHARACTERS_PER_PAGE` characters.
    """
    count = count or max(1, math.ceil(len(text) / CHARACTERS_PER_PAGE))
    size = max(1, math.ceil(len(text) / count))
    pages: list[str] = []
    start = 0
    while start < len(text):
        end = len(text) if len(pages) == count - 1 else min(len(text), start + size)
        if end < len(text):
            end = _break_before(text, start, end)
        pages.append(text[start:end])
        start = end
    return pages


def _break_before(text: str, start: int, end: int) -> int:
    """Find the last line end, or else blank, in the second half of `text[start:end]`."""
    half = start + (end - start) // 2
    for separator in ("\n", " "):
        cut = text.rfind(separator, half, end)
        if cut >= 0:
            return cut + 1
    return end

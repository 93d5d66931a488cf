"""The values that pass between extraction, chunking and embedding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from drivefeed.domain.errors import Permanent

if TYPE_CHECKING:
    from drivefeed.domain.reasons import Reason

CHARACTERS_PER_PAGE: Final = 3_000
"""What counts as a page where a format has none of its own."""


class Rejected(Permanent):
    """A file can't be imported.

    Attributes:
        reason: One of the reasons of kind `rejected`.
        detail: A sentence for the person who owns the file.
    """

    def __init__(self, reason: Reason, detail: str) -> None:
        super().__init__(detail, reason=reason)
        self.detail = detail


@dataclass(frozen=True, slots=True)
class Limits:
    """What one extraction may use. A file that needs more is rejected, never waited for.

    Attributes:
        file_bytes: Size of the file on disk.
        unzipped_bytes: Uncompressed size of the parts that are read of a ZIP-based format.
        text_bytes: UTF-8 size of the text that comes out.
        pages: Pages, slides or sheets.
        memory_bytes: Address space of the child process.
        cpu_seconds: Processor time.
        wall_seconds: Time from the request to the answer.
        ocr_pages: Pages that may be read from their picture, of those without text; 0 is no OCR.
        ocr_page_seconds: What each of these pages adds to `cpu_seconds` and `wall_seconds`.
    """

    file_bytes: int = 1 << 30
    unzipped_bytes: int = 512 << 20
    text_bytes: int = 50_000_000
    pages: int = 20_000
    memory_bytes: int = 1 << 30
    cpu_seconds: int = 60
    wall_seconds: float = 120.0
    ocr_pages: int = 0
    ocr_page_seconds: float = 60.0


@dataclass(frozen=True, slots=True)
class Page:
    """The text of one page, slide or sheet.

    Attributes:
        number: From 1, as the document counts. Pages without text are left out.
        text: Never empty.
        label: What people call it, such as a sheet's name; otherwise empty.
        ocr: True where the text was read from a picture, and may hold mistakes.
    """

    number: int
    text: str
    label: str = ""
    ocr: bool = False


@dataclass(frozen=True, slots=True)
class Extraction:
    """What was read from one file.

    Attributes:
        media_type: As detected from the content, whatever the file is called.
        pages: In order; at least one.
        page_count: Pages of the document, those without text included.
        page_count_is_estimate: True where the format does not store its pages.
        title: From the document's own properties, or None.
        language: As the document declares it (BCP 47), or None.
        unread_pages: Pages without text that OCR did not get to, for there were too many.
    """

    media_type: str
    pages: tuple[Page, ...]
    page_count: int
    page_count_is_estimate: bool
    title: str | None = None
    language: str | None = None
    unread_pages: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of one page, small enough for the embedding model.

    Attributes:
        index: From 0, in reading order over the whole document.
        page: Number of the page it comes from.
        text: The piece itself, without outer white space.
        start: Offset of its first character in the page's text.
        end: Offset behind its last character: `page.text[start:end] == text`.
    """

    index: int
    page: int
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Chunking:
    """All chunks of a document.

    Attributes:
        chunks: In reading order.
        truncated: True when the document had more text than chunks are allowed.
    """

    chunks: tuple[Chunk, ...]
    truncated: bool

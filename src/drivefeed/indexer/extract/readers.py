"""One reader per media type, imported when the first file of its type arrives."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

from drivefeed.domain.reasons import Reason
from drivefeed.indexer.extract import detect as kinds
from drivefeed.indexer.model import Rejected

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from drivefeed.indexer.extract.pages import Draft
    from drivefeed.indexer.model import Extraction, Limits


class ReadFile(Protocol):
    """Reads one file of a known type."""

    def __call__(self, path: Path, *, media_type: str, limits: Limits) -> Draft:
        """Return what was read, or raise `Rejected`."""


READERS: Final[Mapping[str, str]] = {
    kinds.PDF: "pdf:read_pdf",
    kinds.DOCX: "docx:read_docx",
    kinds.PPTX: "pptx:read_pptx",
    kinds.XLSX: "xlsx:read_xlsx",
    kinds.XLSB: "sheets:read_sheets",
    kinds.XLS: "sheets:read_sheets",
    kinds.HTML: "html:read_html",
    kinds.RTF: "rtf:read_rtf",
    kinds.CSV: "text:read_text",
    kinds.MARKDOWN: "text:read_text",
    kinds.PLAIN: "text:read_text",
    **dict.fromkeys(kinds.PICTURES, "scans:read_picture"),
}


def read_file(
    path: Path,
    *,
    name: str,
    media_type: str | None,
    limits: Limits,
    more_time: Callable[[], None],
) -> Extraction:
    """Detect and read one file, in this very process: only ever call it in a child.

    Args:
        path: The file.
        name: Its name at the source.
        media_type: What the source says it is, if anything.
        limits: What it may use.
        more_time: Asks for the time of one more page to be read by OCR.

    Raises:
        Rejected: With any reason but those of the pool (timeout, crash).
    """
    size = path.stat().st_size
    if size > limits.file_bytes:
        raise Rejected(
            Reason.TOO_LARGE,
            f"The file has {size >> 20:,} MB; the limit is {limits.file_bytes >> 20:,}.",
        )
    detected = kinds.detect(path, name=name, media_type=media_type, limits=limits)
    module, _, function = READERS[detected].partition(":")
    reader = cast("ReadFile", getattr(import_module(f"{__package__}.{module}"), function))
    draft = reader(path, media_type=detected, limits=limits)
    if limits.ocr_pages and detected in (kinds.PDF, *kinds.PICTURES):
        from drivefeed.indexer.extract.ocr import read_scans

        read_scans(path, draft, limits, more_time)
    return draft.finish()

"""Pages and resource units, estimated before anything is downloaded. Pure.

What a file really has is known when it was read; what it costs at Microsoft is what A2 of the
throttling guidance lists (how-to-avoid-getting-throttled-or-blocked-in-sharepoint-online.md): one
resource unit for each download.
"""

from __future__ import annotations

from math import ceil
from typing import Final

BYTES_PER_PAGE: Final = {
    # As the embedded backend counts: a page of text is 3,000 characters.
    **dict.fromkeys(("txt", "text", "log", "md", "markdown", "rst"), 3_000),
    **dict.fromkeys(("json", "xml", "yaml", "yml", "csv", "tsv"), 3_000),
    # Markup and styles are no text.
    **dict.fromkeys(("html", "htm", "xhtml"), 9_000),
    "rtf": 9_000,
    # Compressed: text with a few pictures; slides with more of them; a sheet is a page.
    **dict.fromkeys(("docx", "docm"), 25_000),
    **dict.fromkeys(("pptx", "pptm"), 120_000),
    **dict.fromkeys(("xlsx", "xlsm"), 60_000),
    "xls": 100_000,
    "pdf": 75_000,
}
"""Bytes of a typical page by file name ending: rules of thumb, right to a factor of two or so for a
folder as a whole, and far off for a single scan or a single presentation."""

OTHER_BYTES_PER_PAGE: Final = 50_000
RU_OF_A_DOWNLOAD: Final = 1


def estimated_pages(ending: str, size: int | None) -> int:
    """Return how many pages a file probably has: at least one, and one where its size is unknown.

    Args:
        ending: of its name, without the dot, lower-case.
        size: bytes as listed.
    """
    return max(1, ceil((size or 0) / BYTES_PER_PAGE.get(ending, OTHER_BYTES_PER_PAGE)))


def minutes_at(units: int, *, per_minute: int, share: float) -> float:
    """Return how long so many resource units take at our share of Microsoft's limit."""
    return units / (per_minute * share)

"""The pages of a file, where its format tells them without being read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from drivefeed.indexer.extract import detect as kinds
from drivefeed.indexer.model import Extraction

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from drivefeed.indexer.model import Limits

COUNTED: Final = frozenset({"pdf"})
"""Endings of file names whose pages are worth to be counted."""


def count_file(
    path: Path,
    *,
    name: str,
    media_type: str | None,
    limits: Limits,
    more_time: Callable[[], None],
) -> Extraction:
    """Count the pages of a file, in this very process: only ever call it in a child.

    Returns:
        An extraction without text; its pages are 0 where the format does not tell them.

    Raises:
        Rejected: It cannot be opened.
    """
    del more_time
    detected = kinds.detect(path, name=name, media_type=media_type, limits=limits)
    count = 0
    if detected == kinds.PDF:
        from drivefeed.indexer.extract.pdf import count_pages

        count = count_pages(path)
    return Extraction(media_type=detected, pages=(), page_count=count, page_count_is_estimate=False)

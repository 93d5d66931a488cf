"""Pages: estimated, held, adjusted, settled and released, as arithmetic. Pure.

What a file really has is known when it was read; what it costs at Microsoft is what A2 of the
throttling guidance lists (how-to-avoid-getting-throttled-or-blocked-in-sharepoint-online.md): one
resource unit for each download.

Of a limit, pages are *used* (charged) or *held* for imports under way; the rest is *free*. An
import holds its estimate before the download, or what is free of it. Once its pages are counted it
holds exactly these, or nothing. What a backend then counts is charged whatever was held, because
the work was done; what exceeds the held pages is its *overage*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

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


@dataclass(frozen=True, slots=True)
class Balance:
    """How the pages of an organization stand.

    Attributes:
        limit: pages that may be used in the period; None where there is no limit.
        used: pages charged in the period, corrections included.
        held: pages that imports under way hold.
    """

    limit: int | None
    used: int = 0
    held: int = 0

    @property
    def free(self) -> int | None:
        """Pages that nobody uses or holds, at least 0; None where there is no limit."""
        if self.limit is None:
            return None
        return max(0, self.limit - self.used - self.held)

    @property
    def over(self) -> int:
        """Pages that were used beyond the limit."""
        return 0 if self.limit is None else max(0, self.used - self.limit)


def hold(balance: Balance, wanted: int, *, exact: bool) -> int:
    """Return how many pages an import may hold that holds none yet; 0 where it has to wait.

    Args:
        wanted: its estimate, or its counted pages, at least 1.
        exact: whether it was counted, and waits rather than to hold less.
    """
    free = balance.free
    if free is None or free >= wanted:
        return wanted
    return 0 if exact else free


def adjust(balance: Balance, held: int, counted: int) -> int:
    """Return what an import holds once its pages are counted: all of them, or nothing.

    Args:
        balance: with the ``held`` pages of this import in it.
    """
    without = replace(balance, held=balance.held - held)
    return hold(without, counted, exact=True)


def overage_of(balance: Balance, held: int, pages: int) -> int:
    """Return how many of the charged pages were not held, where there is a limit."""
    return 0 if balance.limit is None else max(0, pages - held)


@dataclass(frozen=True, slots=True)
class InLine:
    """An import that waits for pages.

    Attributes:
        wanted: its estimate, or its counted pages.
        exact: whether they were counted.
    """

    import_id: str
    wanted: int
    exact: bool


def let_in(balance: Balance, line: Iterable[InLine]) -> list[tuple[InLine, int]]:
    """Return who may go on, from the head of the line, with the pages that each holds then.

    Who does not fit is skipped, so that one large file does not keep all others waiting.
    """
    chosen: list[tuple[InLine, int]] = []
    for one in line:
        if balance.free == 0:
            break
        granted = hold(balance, one.wanted, exact=one.exact)
        if granted:
            chosen.append((one, granted))
            balance = replace(balance, held=balance.held + granted)
    return chosen

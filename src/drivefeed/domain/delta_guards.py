"""When a round of changes is given up, and what happens then. Pure.

Graph was reported to lead in circles: a nextLink that is its own, or one that is spelled anew each
time and tells the same items (onedrive-api-docs#1424, #1431). It was also reported to send empty
pages that go on, many in a row (microsoft-graph-docs-contrib#1316), so neither emptiness nor the
number of pages alone says that something is wrong. What says it is that nothing new is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from drivefeed.domain.remote import DeltaPage

MOST_BARREN_PAGES: Final = 1_000
"""Pages in a row that told nothing new; doubled each time a round is given up for it."""
MOST_PAGES: Final = 100_000
"""Pages in one round of changes. A listing has no such bound: each of its pages tells of items
that it did not tell before, and a drive has only so many."""
LONGEST_FAILING_MS: Final = 6 * 3_600_000
"""How long the same link may fail before the drive is listed anew instead."""

_FIRST_WAIT_MS = 60_000
_LONGEST_WAIT_MS = 6 * 3_600_000
_MOST_DOUBLINGS = 10


@dataclass(frozen=True, slots=True)
class RoundSoFar:
    """A round under way.

    Attributes:
        cursor: the link whose page is looked at.
        pages: pages of it so far.
        barren: of those, the last ones in a row that told nothing new.
        enumerating: whether it lists everything.
        given_up: how many rounds before it were given up in a row.
    """

    cursor: str | None
    pages: int
    barren: int
    enumerating: bool
    given_up: int


def leads_nowhere(so_far: RoundSoFar, page: DeltaPage) -> str | None:
    """Return why a round has to be given up, as a part of a sentence; None while it gets on."""
    if page.next_link is None:
        return None
    if page.next_link == so_far.cursor:
        return "its next page is the page itself"
    if so_far.barren >= most_barren(so_far.given_up):
        return f"{so_far.barren} pages in a row told nothing new"
    if not so_far.enumerating and so_far.pages >= MOST_PAGES:
        return f"it did not end after {so_far.pages} pages"
    return None


def most_barren(given_up: int) -> int:
    """Return how many pages in a row may tell nothing new: more each time that was too few."""
    return MOST_BARREN_PAGES << min(given_up, _MOST_DOUBLINGS)


def wait_after(given_up: int) -> int:
    """Return how many milliseconds to wait after so many rounds in a row were given up."""
    doubled: int = _FIRST_WAIT_MS << min(max(given_up - 1, 0), _MOST_DOUBLINGS)
    return min(doubled, _LONGEST_WAIT_MS)

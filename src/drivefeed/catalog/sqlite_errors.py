"""What SQLite's errors mean: which of them pass, so that work waits instead of failing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.domain.errors import Part, PartDown

if TYPE_CHECKING:
    from sqlalchemy.exc import SQLAlchemyError

_PASSING = {
    "disk is full": "The disk of the catalog is full, so nothing can be recorded and work waits. "
    "Make room; it goes on by itself.",
    "is locked": "Another program keeps the catalog's file locked, so nothing can be recorded and "
    "work waits. End that program, or let it finish; it goes on by itself.",
    "disk i/o error": "The disk of the catalog reports an error, so nothing can be recorded and "
    "work waits. Look at the disk; it goes on by itself.",
    "unable to open": "The catalog's file cannot be opened, so nothing can be recorded and work "
    "waits. Look at its folder and its rights; it goes on by itself.",
    "readonly": "The catalog's file cannot be written, so work waits. Look at its rights and at "
    "how its disk is mounted; it goes on by itself.",
    # SQLAlchemy's own: all connections wait for the same lock.
    "queuepool limit": "The catalog is so busy that no connection to it was free, so work waits. "
    "It goes on by itself.",
}
"""By words of the error. Anything else (a damaged file, wrong SQL) does not pass by waiting."""


def catalog_down(error: SQLAlchemyError) -> PartDown | None:
    """Return the sentence for an error that passes; None for a defect or a damaged file."""
    said = str(getattr(error, "orig", None) or error).casefold()
    for words, sentence in _PASSING.items():
        if words in said:
            return PartDown(sentence, part=Part.CATALOG)
    return None

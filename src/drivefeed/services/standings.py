"""Where files stand, told the same way by commands and by the status page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from drivefeed.catalog.progress import Standing
from drivefeed.domain.reasons import Reason
from drivefeed.domain.words import meaning_of, remedy_of

if TYPE_CHECKING:
    from drivefeed.catalog.progress import Progress

_TOLD = (Standing.FAILED, Standing.HELD, Standing.SKIPPED)


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why files of a connection do not move.

    Attributes:
        standing: where the files stand; None where it is about the whole connection.
        files: how many; 0 where it is about the whole connection.
        asks: whether it waits for a person.
        meaning, remedy: the words of the reason; the remedy may be empty.
        detail: what the other side said, if anything.
    """

    standing: Standing | None
    code: str
    files: int
    asks: bool
    meaning: str
    remedy: str
    detail: str = ""


def word_of(standing: Standing) -> str:
    """Return a standing as people read it."""
    return standing.value.replace("_", " ")


def troubles_of(one: Progress) -> list[Trouble]:
    """Say in words why files are skipped, held or failed, and what to do; the worst first."""
    found = []
    attention = one.connection.attention or one.drive_attention
    code = attention or one.drive_hold
    if code:
        words = (meaning_of(code), remedy_of(code), one.detail or "")
        found.append(Trouble(None, str(code), 0, attention is not None, *words))
    if one.connection.paused and not one.connection.disconnected:
        words = (meaning_of(Reason.PAUSED), remedy_of(Reason.PAUSED), "")
        found.append(Trouble(None, Reason.PAUSED.value, 0, False, *words))
    for standing in _TOLD:
        for (stands, why), count in sorted(one.reasons.items()):
            if stands is standing:
                asks = standing is Standing.FAILED
                found.append(Trouble(standing, why, count, asks, meaning_of(why), remedy_of(why)))
    return found


def progress_dict(one: Progress) -> dict[str, Any]:
    """Return a connection's progress as JSON values."""
    return {
        "connection_id": one.connection.connection_id,
        "name": one.connection.name,
        "drive": one.drive_name,
        "paused": one.connection.paused,
        "disconnected": one.connection.disconnected,
        "attention": one.connection.attention or one.drive_attention,
        "hold": one.drive_hold,
        "detail": one.detail,
        "listed": one.listed,
        # What is paused is not up to date, whatever was found before.
        "at_rest": one.at_rest and not one.connection.paused,
        "found": one.found,
        "percent": one.percent,
        "planned": one.planned,
        "since": one.since,
        "seconds_left": None if one.seconds_left is None else round(one.seconds_left),
        "pages": one.pages,
        **{standing.value: count for standing, count in one.counts.items()},
        "reasons": [
            {
                "standing": standing.value,
                "reason": why,
                "files": count,
                "meaning": meaning_of(why),
                "remedy": remedy_of(why),
            }
            for (standing, why), count in sorted(one.reasons.items())
        ],
    }

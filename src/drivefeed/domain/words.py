"""Words for people, the same in every place: reasons, counts, sizes and times. Pure."""

from __future__ import annotations

from datetime import UTC, datetime

from drivefeed.domain.explanations import explain
from drivefeed.domain.reasons import Reason

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_KIB = 1024.0


def meaning_of(code: str) -> str:
    """Return what a reason code means, or that it is in that state where it is no reason."""
    try:
        return explain(Reason(code)).meaning
    except ValueError:
        return f"It is {code}."


def remedy_of(code: str) -> str:
    """Return what to do about a reason; empty where it is a state."""
    try:
        return explain(Reason(code)).remedy
    except ValueError:
        return ""


def count_of(number: int, noun: str) -> str:
    """Return a count with its noun: ``1 page``, ``2 pages``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def size_of(number: int) -> str:
    """Return bytes as people say them: ``812 B``, ``38.2 KiB``."""
    if number < _KIB:
        return f"{number} B"
    value = float(number)
    for unit in ("KiB", "MiB", "GiB"):
        value /= _KIB
        if value < _KIB:
            return f"{value:.1f} {unit}"
    return f"{value / _KIB:.1f} TiB"


def duration_of(seconds: float) -> str:
    """Return a duration with two units at most: ``0.4 s``, ``12 s``, ``3 min 5 s``, ``2 h``."""
    if seconds < 10:  # noqa: PLR2004 - below it, tenths tell something
        return f"{seconds:.1f} s"
    whole = round(seconds)
    for size, unit, smaller, below in (
        (_DAY, "d", _HOUR, "h"),
        (_HOUR, "h", _MINUTE, "min"),
        (_MINUTE, "min", 1, "s"),
    ):
        if whole >= size:
            rest = whole % size // smaller
            return f"{whole // size} {unit}" + (f" {rest} {below}" if rest else "")
    return f"{whole} s"


def local_time(at: int) -> datetime:
    """Return an instant (milliseconds since the epoch) on the clock of this machine."""
    return datetime.fromtimestamp(at / 1000, tz=UTC).astimezone()


def instant_of(at: int) -> str:
    """Return an instant as date and time of this machine's zone, to the second."""
    return local_time(at).strftime("%Y-%m-%d %H:%M:%S")

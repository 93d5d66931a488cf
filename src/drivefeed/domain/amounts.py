"""Sizes, durations, dates and windows of the day as people write them. Pure."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, time
from typing import Final

_AMOUNT: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")
_SIZES: Final = {
    "": 1,
    "b": 1,
    **{f"{unit}b": 1000**power for power, unit in enumerate("kmgt", start=1)},
    **{f"{unit}ib": 1024**power for power, unit in enumerate("kmgt", start=1)},
}
_SECOND: Final = 1000
_DURATIONS: Final = {
    **dict.fromkeys(("", "s", "sec", "second", "seconds"), _SECOND),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60 * _SECOND),
    **dict.fromkeys(("h", "hour", "hours"), 3600 * _SECOND),
    **dict.fromkeys(("d", "day", "days"), 86_400 * _SECOND),
    **dict.fromkeys(("w", "week", "weeks"), 7 * 86_400 * _SECOND),
    **dict.fromkeys(("y", "year", "years"), 365 * 86_400 * _SECOND),
}
_WINDOW: Final = re.compile(r"\s*(\d{1,2}):(\d{2})\s*-\s*(\d{1,2}):(\d{2})\s*")
_UNITS_OF_TIME: Final = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))
_UNITS_OF_SIZE: Final = ("TiB", 1024**4), ("GiB", 1024**3), ("MiB", 1024**2), ("KiB", 1024)


def size_from(value: object) -> int | None:
    """Return bytes: a number, or text such as ``50 MB`` or ``4 GiB``; None if it is neither."""
    found = _amount(value, _SIZES)
    return None if found is None else int(found)


def duration_from(value: object) -> int | None:
    """Return milliseconds: seconds as a number, or text such as ``7 d``; None if it is neither."""
    found = _amount(value, _DURATIONS)
    if found is None:
        return None
    return int(found if isinstance(value, str) else found * _SECOND)


def _amount(value: object, units: dict[str, int]) -> float | None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value if value >= 0 else None
    match = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    unit = units.get(match[2].lower()) if match else None
    return None if match is None or unit is None else float(match[1]) * unit


def instant_from(value: object) -> int | None:
    """Return milliseconds since the epoch of a date or a time; without a zone it is UTC."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time())
    if not isinstance(value, datetime):
        return None
    return round(value.replace(tzinfo=value.tzinfo or UTC).timestamp() * _SECOND)


def window_from(value: object) -> tuple[time, time] | None:
    """Return begin and end of a window of the day such as ``22:00-06:00``; None if it is none."""
    match = _WINDOW.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    try:
        begin, end = time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4]))
    except ValueError:
        return None
    return None if begin == end else (begin, end)


def duration_words(millis: int) -> str:
    """Return a duration as one writes it in a policy: ``7 d``, ``90 min``, ``0 s``."""
    for unit, size in _UNITS_OF_TIME:
        if millis >= size and millis % size == 0:
            return f"{millis // size} {unit}"
    return f"{millis / _SECOND:g} s"


def size_words(size: int) -> str:
    """Return a size as one writes it in a policy: ``4 GiB``, ``1500 B``."""
    for unit, bytes_ in _UNITS_OF_SIZE:
        if size >= bytes_ and size % bytes_ == 0:
            return f"{size // bytes_} {unit}"
    return f"{size} B"


def date_words(at: int) -> str:
    """Return an instant as a date where it is midnight UTC, else as date and time in UTC."""
    moment = datetime.fromtimestamp(at / _SECOND, tz=UTC)
    if moment.time() == time():
        return moment.date().isoformat()
    return moment.strftime("%Y-%m-%d %H:%M:%SZ")

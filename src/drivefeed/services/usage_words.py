"""Usage in words and as JSON values, the same for commands and for the status page."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from drivefeed.domain.periods import Period
from drivefeed.domain.quiet import zone_of
from drivefeed.domain.words import count_of

if TYPE_CHECKING:
    from drivefeed.catalog.usage import Usage


def usage_dict(one: Usage) -> dict[str, Any]:
    """Return usage as JSON values; times are milliseconds since the epoch."""
    return {**asdict(one), "percent": one.percent}


def usage_sentence(one: Usage) -> str:
    """Return in words how the pages of an organization stand, and whose books others are in."""
    return " ".join([_of_ours(one), *(_of_backend(*each) for each in one.copied.items())])


def _of_backend(name: str, pages: int) -> str:
    verb = "is" if pages == 1 else "are"
    return (
        f"{_pages(pages)} {verb} in the books of the backend '{name}', which counts them itself; "
        "no limit of ours holds for them."
    )


def _of_ours(one: Usage) -> str:
    if one.limit is None:
        return f"{_pages(one.total)} charged so far; there is no limit."
    each = "" if one.period is Period.TOTAL else f" a {one.period}"
    parts = [f"{one.used:,} of {_pages(one.limit)}{each} used"]
    if one.held:
        parts.append(f"{one.held:,} held for files under way")
    parts.append(f"{one.free:,} free" if not one.over else f"{one.over:,} over the limit")
    words = ", ".join(parts)
    if one.files_waiting:
        verb = "waits" if one.files_waiting == 1 else "wait"
        words += f"; {count_of(one.files_waiting, 'file')} {verb} for pages"
    if one.resets_at is not None:
        words += f"; counted anew on {day_of(one.resets_at, one.time_zone)} ({one.time_zone})"
    return f"{words}."


def day_of(at: int, zone: str) -> str:
    """Return the date of an instant in a time zone."""
    moment = datetime.fromtimestamp(at / 1000, tz=UTC)
    return moment.astimezone(zone_of(zone) or UTC).date().isoformat()


def _pages(number: int) -> str:
    return "1 page" if number == 1 else f"{number:,} pages"

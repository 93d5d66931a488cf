"""The periods of a page limit: all time, or a calendar month or day of a time zone. Pure.

Instants are milliseconds since the epoch.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum

from drivefeed.domain.quiet import zone_of


class Period(StrEnum):
    """How often the used pages of a limit begin anew."""

    TOTAL = "total"
    MONTH = "month"
    DAY = "day"


def begin_of(period: Period, zone: str, now: int) -> int:
    """Return when the period began that ``now`` lies in; 0 for all time.

    Args:
        zone: a name of the tz database; UTC where this machine does not know it.
    """
    if period is Period.TOTAL:
        return 0
    return _instant(_first_day(period, _local_day(zone, now)), zone)


def end_of(period: Period, zone: str, now: int) -> int | None:
    """Return when the next period begins after ``now``; None for all time."""
    if period is Period.TOTAL:
        return None
    first = _first_day(period, _local_day(zone, now))
    # 32 days after the first of a month lie in the next one.
    length = timedelta(days=32 if period is Period.MONTH else 1)
    return _instant(_first_day(period, first + length), zone)


def _local_day(zone: str, now: int) -> date:
    return datetime.fromtimestamp(now / 1000, tz=UTC).astimezone(zone_of(zone) or UTC).date()


def _first_day(period: Period, day: date) -> date:
    return day.replace(day=1) if period is Period.MONTH else day


def _instant(day: date, zone: str) -> int:
    """Return when a day begins; a midnight that clocks skip is when they are put forward."""
    local = datetime.combine(day, time(), tzinfo=zone_of(zone) or UTC)
    return round(local.timestamp() * 1000)

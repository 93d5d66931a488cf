"""Periods of limits: calendar months and days where the customer lives."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.domain.periods import Period, begin_of, end_of

YEAR_MS = 365 * 24 * 3600 * 1000


def at(words: str, zone: str = "UTC") -> int:
    return round(datetime.fromisoformat(words).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


@pytest.mark.parametrize(
    ("period", "zone", "now", "begin", "end"),
    [
        (Period.MONTH, "UTC", "2027-01-31T23:59", "2027-01-01", "2027-02-01"),
        (Period.MONTH, "UTC", "2027-12-01T00:00", "2027-12-01", "2028-01-01"),
        (Period.MONTH, "Europe/Berlin", "2027-03-31T23:30", "2027-03-01", "2027-04-01"),
        (Period.DAY, "Europe/Berlin", "2027-03-28T12:00", "2027-03-28", "2027-03-29"),
        (Period.DAY, "Pacific/Auckland", "2027-02-28T00:00", "2027-02-28", "2027-03-01"),
    ],
)
def test_a_period_is_a_calendar_month_or_day_of_its_zone(
    period: Period, zone: str, now: str, begin: str, end: str
) -> None:
    assert begin_of(period, zone, at(now, zone)) == at(begin, zone)
    assert end_of(period, zone, at(now, zone)) == at(end, zone)


def test_all_time_has_neither_begin_nor_end() -> None:
    assert begin_of(Period.TOTAL, "UTC", 5) == 0
    assert end_of(Period.TOTAL, "UTC", 5) is None


@given(
    st.sampled_from([Period.MONTH, Period.DAY]),
    st.sampled_from(["UTC", "Europe/Berlin", "America/New_York", "Pacific/Auckland", "No/Where"]),
    st.integers(0, 130 * YEAR_MS),
)
def test_periods_follow_each_other_without_a_gap(period: Period, zone: str, now: int) -> None:
    end = end_of(period, zone, now)
    assert end is not None
    begin = begin_of(period, zone, now)
    assert begin <= now < end
    assert begin_of(period, zone, end) == end
    assert end_of(period, zone, begin) == end
    assert begin_of(period, zone, end - 1) == begin

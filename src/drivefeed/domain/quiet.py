"""Quiet hours: a window of local time in which no transfer starts. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from drivefeed.domain.amounts import window_from

if TYPE_CHECKING:
    from collections.abc import Iterable

    from drivefeed.domain.model import Policy


def zone_of(name: str) -> tzinfo | None:
    """Return a time zone by its name in the tz database, or None where there is none.

    UTC is there even on a machine without that database.
    """
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return None


def quiet_until(policy: Policy, now: int) -> int | None:
    """Return when the quiet hours end in which ``now`` lies, or None where it lies in none.

    A window that ends before it begins goes over midnight. Where clocks are put forward over an
    end, it ends when that hour would have been.

    Args:
        now: milliseconds since the epoch, as the answer.
    """
    window, zone = window_from(policy.quiet_hours), zone_of(policy.time_zone)
    if window is None or zone is None:
        return None
    begin, end = window
    local = datetime.fromtimestamp(now / 1000, tz=UTC).astimezone(zone)
    clock = local.time()
    is_quiet = begin <= clock < end if begin < end else clock >= begin or clock < end
    if not is_quiet:
        return None
    day = local.date() + timedelta(days=1) if clock >= end else local.date()
    until = datetime.combine(day, end, tzinfo=zone).astimezone(UTC)
    # The hour that clocks are put back to is there twice; an end in its first pass may be over.
    return max(now + 1000, round(until.timestamp() * 1000))


def all_quiet_until(policies: Iterable[Policy], now: int) -> int | None:
    """Return when the first of them is quiet no more, or None where one of them is not quiet."""
    ends = [quiet_until(policy, now) for policy in policies]
    if not ends or None in ends:
        return None
    return min(end for end in ends if end is not None)

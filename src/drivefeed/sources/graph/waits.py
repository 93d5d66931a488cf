"""How long a throttled client was asked to wait."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from drivefeed.domain.budget import Remaining

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_WAIT = 3600.0
"""Seconds. Longer requests to wait are cut to this, and asked again then."""

_YEAR_2001 = 1_000_000_000.0


def _date(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return None


def _number(text: str) -> float | None:
    # float() would also take 'nan', 'inf' and '1_0'.
    digits = text.strip()
    if len(digits) > 15 or not digits.replace(".", "", 1).isascii():  # noqa: PLR2004 (no wait is)
        return None
    return float(digits) if digits.replace(".", "", 1).isdigit() else None


def told_wait(headers: Mapping[str, str], *, now: int) -> float | None:
    """Return the seconds that ``Retry-After`` or ``RateLimit-Reset`` ask for, or None.

    ``Retry-After`` may be seconds or an HTTP date, which is compared with the server's own
    ``Date`` so that a wrong clock on either side does no harm. Zero, negative and unreadable
    values count as absent. The greater of the two headers wins, as Microsoft asks for; the
    result is at most :data:`LONGEST_WAIT`.

    Args:
        headers: the answer's headers, looked up without regard to case.
        now: milliseconds since the epoch, used where the server sent no ``Date``.
    """
    here = _date(headers.get("date", "")) or now / 1000
    waits = []
    for name in ("retry-after", "ratelimit-reset"):
        text = headers.get(name, "")
        wait = _number(text)
        if wait is None:
            date = _date(text)
            wait = None if date is None else date - here
        elif wait > _YEAR_2001:
            wait -= here
        if wait is not None and wait > 0:
            waits.append(min(wait, LONGEST_WAIT))
    return max(waits, default=None)


def told_remaining(headers: Mapping[str, str]) -> Remaining | None:
    """Return what an answer tells of the minute's resource units, or None.

    Microsoft sends ``RateLimit-Limit``, ``-Remaining`` and ``-Reset`` (seconds) from 80 % on, as
    the third draft of the IETF has them; the limit may be followed by its policy.
    """
    left, reset = (_number(headers.get(f"ratelimit-{one}", "")) for one in ("remaining", "reset"))
    if left is None or reset is None or reset > LONGEST_WAIT:
        return None
    limit = _number(headers.get("ratelimit-limit", "").partition(",")[0].partition(";")[0])
    return Remaining(int(limit or 0), int(left), int(reset * 1000))

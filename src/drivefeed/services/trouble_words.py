"""Words that notices are made of. Pure."""

from __future__ import annotations

from drivefeed.domain.explanations import explain
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import redact
from drivefeed.domain.visible import visible
from drivefeed.domain.words import count_of

_LONGEST_DETAIL = 300


def reason_of(code: str) -> Reason | None:
    """Return the reason of a code; None for a state."""
    return Reason(code) if code in set(Reason) else None


def explained(code: str, otherwise: str) -> tuple[str, str]:
    """Return what a code means and what to do; ``otherwise`` and nothing for one that is new."""
    reason = reason_of(code)
    if reason is None:
        return otherwise, ""
    return explain(reason).meaning, explain(reason).remedy


def said(detail: str) -> str:
    """Return what was said about it as a sentence, without secrets and on one line."""
    line = visible(" ".join(redact(detail).split()))
    if not line:
        return ""
    return f" Details: {line if len(line) <= _LONGEST_DETAIL else line[:_LONGEST_DETAIL] + '…'}"


def because(hold: str | None) -> str:
    """Return what a hold means, in brackets."""
    reason = reason_of(hold or "")
    return f" ({explain(reason).meaning.rstrip('.')})" if reason else ""


def duration_of(ms: int) -> str:
    """Return a duration in its largest unit that still tells something."""
    minutes = ms // 60_000
    if minutes < 120:  # noqa: PLR2004 - below it, hours would say too little
        return count_of(minutes, "minute")
    hours = minutes // 60
    return count_of(hours, "hour") if hours < 48 else count_of(hours // 24, "day")  # noqa: PLR2004 - the same

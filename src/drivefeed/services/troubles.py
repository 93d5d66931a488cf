"""What is wrong with accounts, quotas and parts: whose it is, and what to run."""

from __future__ import annotations

from collections import defaultdict
from shlex import quote
from typing import TYPE_CHECKING

from drivefeed.domain.errors import Part
from drivefeed.domain.notices import (
    DAY_MS,
    QUOTA_PERCENT,
    NoticeKind,
    Severity,
    Trouble,
    expiry_step,
    quota_step,
)
from drivefeed.domain.periods import Period
from drivefeed.domain.reasons import Reason
from drivefeed.domain.visible import visible
from drivefeed.domain.words import count_of
from drivefeed.services.connection_troubles import SIGN_IN
from drivefeed.services.trouble_words import duration_of, explained, said

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from drivefeed.catalog.parts_down import Down
    from drivefeed.catalog.troubles import AccountFacts, Facts, OrgFacts
    from drivefeed.services.connection_troubles import Rules

_CALM = frozenset({"ok", "unreached"})
"""States that no person has to end; that Microsoft does not answer is told of the part."""
_PARTS = frozenset(Part)
_URGENT_DAYS = 3
_MIDDLE_DAYS = 14


def account_troubles(facts: Facts, rules: Rules, *, now: int) -> Iterator[Trouble]:
    """Yield accounts that cannot sign in or get nothing, and those whose secret ends soon."""
    drives: dict[str, set[str]] = defaultdict(set)
    reasons: dict[str, tuple[str, str]] = {}
    for one in facts.connections:
        drives[one.account_id].add(one.drive_id)
        if one.drive_attention in SIGN_IN:
            reasons.setdefault(one.account_id, (str(one.drive_attention), one.drive_detail))
    for account in facts.accounts:
        reason, detail = reasons.get(account.account_id, ("", ""))
        if account.state not in _CALM:
            reason, detail = account.reason or account.state, account.detail or detail
        if reason:
            yield _account(facts, account, reason, detail, len(drives[account.account_id]))
        elif account.throttled_ms >= rules.throttled_ms:
            yield _throttled(account)
        step = expiry_step(account.expires_at, now=now)
        if step is not None and account.expires_at is not None:
            yield _expiry(facts, account, step, account.expires_at - now)


def _account(facts: Facts, account: AccountFacts, reason: str, detail: str, drives: int) -> Trouble:
    meaning, remedy = explained(reason, f"It is {reason.replace('_', ' ')}.")
    waiting = f" {count_of(drives, 'drive')} read through it {_verb(drives)}." if drives else ""
    return Trouble(
        kind=NoticeKind.ACCOUNT,
        severity=Severity.URGENT,
        org_id=account.org_id,
        org=account.org,
        subject_id=account.account_id,
        subject=f"account '{visible(account.name)}'",
        words=f"{meaning}{waiting}{said(detail)}",
        remedy=remedy or "Give the account a sign-in that works.",
        command=f"drivefeed account test {_named(facts, account)}",
        reason=reason,
    )


def _throttled(account: AccountFacts) -> Trouble:
    """Microsoft does not say why an app gets nothing for long; only its support can."""
    return Trouble(
        kind=NoticeKind.ACCOUNT,
        severity=Severity.WARNING,
        org_id=account.org_id,
        org=account.org,
        subject_id=account.account_id,
        subject=f"account '{visible(account.name)}'",
        words="Microsoft has refused every request of its app as one too many for "
        f"{duration_of(account.throttled_ms)}. Its drives wait; nothing has failed.",
        remedy="See who else uses the app registration. If nobody does, ask Microsoft's support "
        "why the app is throttled.",
        command="drivefeed status",
        reason=Reason.THROTTLED,
    )


def _named(facts: Facts, account: AccountFacts) -> str:
    """Return an account as commands take it; names are unique within an organization."""
    several = len(facts.orgs) > 1
    return quote(account.name) + (f" --org {quote(account.org)}" if several else "")


def _verb(count: int) -> str:
    return "waits; its position is kept" if count == 1 else "wait; their positions are kept"


def _expiry(facts: Facts, account: AccountFacts, step: int, left: int) -> Trouble:
    days = left // DAY_MS
    when = f"ends in {count_of(days, 'day')}" if days else "ends within a day"
    if step == 0:
        when = "has ended"
    severity = Severity.NOTICE
    if step <= _MIDDLE_DAYS:
        severity = Severity.URGENT if step <= _URGENT_DAYS else Severity.WARNING
    return Trouble(
        kind=NoticeKind.EXPIRY,
        severity=severity,
        org_id=account.org_id,
        org=account.org,
        subject_id=account.account_id,
        subject=f"account '{visible(account.name)}'",
        words=f"Its secret, certificate or sign-in {when}.",
        remedy="Give it a new one before that; the position in its drives is kept.",
        command=f"drivefeed account reconnect {_named(facts, account)}",
        step=str(step),
    )


def quota_troubles(organizations: list[OrgFacts]) -> Iterator[Trouble]:
    """Yield organizations that used 80, 95 or 100 % of their pages."""
    for org in organizations:
        limit = org.page_limit
        step = quota_step(org.pages_used, limit)
        if step is None:
            continue
        full = step == QUOTA_PERCENT[0]
        yield Trouble(
            kind=NoticeKind.QUOTA,
            severity=Severity.URGENT if full else Severity.WARNING,
            org_id=org.org_id,
            org=org.name,
            subject_id=org.org_id,
            subject=f"organization '{visible(org.name)}'",
            words=f"{org.pages_used:,} of {limit:,} pages are used{_when(org)} ({step} % reached)."
            + (" New files wait." if full else ""),
            remedy="Raise the limit or free pages; what waits goes on by itself.",
            command=f"drivefeed usage --org {quote(org.name)}",
            step=str(step),
        )


def _when(org: OrgFacts) -> str:
    return "" if org.period is Period.TOTAL else f" in this {org.period}"


def part_troubles(down: Mapping[str, Down], rules: Rules, *, now: int) -> Iterator[Trouble]:
    """Yield parts, and single backends, that are down for long.

    Args:
        down: by name, as breakers call them.
    """
    for name, one in down.items():
        if now - one.since < rules.down_ms:
            continue
        yield Trouble(
            kind=NoticeKind.PART_DOWN,
            severity=Severity.URGENT,
            org_id=None,
            org="",
            subject_id=name,
            subject=f"part '{name}'" if name in _PARTS else name,
            words=f"It does not answer for {duration_of(now - one.since)}.{said(one.words)}",
            remedy="Its work waits and goes on by itself once the part answers again.",
            command="drivefeed doctor",
        )


def disk_troubles(facts: Facts) -> Iterator[Trouble]:
    """Yield machines with a disk that is nearly full, so that nothing new is downloaded."""
    for host, gate in facts.gates.items():
        if not gate.is_shut or gate.reason is None:
            continue
        meaning, remedy = explained(gate.reason, "")
        yield Trouble(
            kind=NoticeKind.DISK,
            severity=Severity.URGENT,
            org_id=None,
            org="",
            subject_id=host,
            subject=f"machine '{host}'",
            words=f"{meaning} {gate.words}",
            remedy=remedy,
            command="drivefeed doctor",
            reason=gate.reason,
        )

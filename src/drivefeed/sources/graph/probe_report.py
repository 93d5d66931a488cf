"""What a probe found: what the account has, what is missing, what is more than needed."""

from __future__ import annotations

from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Literal

from drivefeed.domain.nothing import nothing_found, nothing_permitted
from drivefeed.domain.reasons import Reason
from drivefeed.sources.graph.permissions import excess, opens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.sources.graph.account import GraphAccount
    from drivefeed.sources.graph.claims import TokenClaims

MOST_SKEW = 300.0
"""Seconds by which clocks may differ before Microsoft refuses what a certificate signed."""
_NOTABLE_SKEW = 60.0
_DENIED = frozenset(
    {Reason.ACCESS_DENIED, Reason.GRANT_MISSING, Reason.CONSENT_MISSING, Reason.SITE_LOCKED}
)
"""It is there, or may be, and the account may not read it."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried.

    Attributes:
        name: ``sign_in``, ``drive``, ``changes``, ``content`` or ``clock``.
        ok: None where it could not be tried.
        reason: of the closed list, where it failed for one.
    """

    name: str
    ok: bool | None
    sentence: str
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """The result of a probe.

    Attributes:
        signed_in_as: the app or the person, in words; empty where the sign-in failed.
        has: what the token holds; None where it cannot be read (personal accounts).
        missing: what is missing, each as a sentence with its remedy.
        excess: permissions that are more than needed, each with what it allows.
        granted: for selected sites, whether the one that was tried is granted; else None.
        skew: seconds by which this machine's clock is ahead of Microsoft's; None if unknown.
        nothing: why there is nothing to import, if that is so.
    """

    account: str
    verdict: Literal["ok", "warning", "failed"]
    signed_in_as: str
    has: tuple[str, ...] | None
    missing: tuple[str, ...]
    excess: dict[str, str]
    granted: bool | None
    skew: float | None
    checks: tuple[Check, ...]
    nothing: str | None = None


def verdict_of(
    account: GraphAccount,
    claims: TokenClaims | None,
    checks: tuple[Check, ...],
    *,
    skew: float | None,
    place: str,
    files: int | None,
) -> ProbeReport:
    """Put together what the checks and the token say.

    Args:
        claims: what the token says; None where there is none, or it cannot be read.
        skew: seconds by which our clock is ahead.
        place: what was tried, as the person named it.
        files: how many files the drive has on its first page; None if that was not found out.
    """
    checks = (*checks, *_clock_check(skew))
    failed = next((one for one in checks if one.ok is False), None)
    permissions = claims.permissions if claims else frozenset()
    opened = opens(permissions) if claims else None
    tried = [one for one in checks if one.name == "drive"]
    granted = None
    if opened == "selected" and tried:
        granted = not any(one.reason is Reason.GRANT_MISSING for one in checks)
    missing = _missing(opened, failed, account, place)
    too_much = excess(permissions)
    nothing = nothing_found(place) if files == 0 else None
    if any(one.ok is False and one.reason in _DENIED for one in tried):
        nothing = nothing_permitted(place or "the drive")
    throttled = any(one.reason is Reason.THROTTLED for one in checks)
    verdict: Literal["ok", "warning", "failed"] = "ok"
    if failed or missing:
        verdict = "failed"
    elif too_much or nothing or throttled or (skew and abs(skew) > _NOTABLE_SKEW):
        verdict = "warning"
    return ProbeReport(
        account=account.name,
        verdict=verdict,
        signed_in_as=_who(account, claims, checks),
        has=tuple(sorted(permissions)) if claims else None,
        missing=missing,
        excess=too_much,
        granted=granted,
        skew=skew,
        checks=checks,
        nothing=nothing,
    )


def skew_of(headers: Mapping[str, str], *, now: int, before: float | None) -> float | None:
    """Return by how many seconds our clock is ahead of an answer's ``Date``.

    Args:
        headers: of the answer, looked up without regard to case.
        now: milliseconds since the epoch, when it came.
        before: what an earlier answer said; the smaller difference is the better measure, since
            the way of an answer takes time.
    """
    try:
        there = parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (ValueError, TypeError, OverflowError):
        return before
    found = round(now / 1000 - there, 1)
    return found if before is None or abs(found) < abs(before) else before


def _clock_check(skew: float | None) -> tuple[Check, ...]:
    if skew is None:
        return ()
    way = "ahead of" if skew > 0 else "behind"
    if abs(skew) <= _NOTABLE_SKEW:
        return (Check("clock", True, "The clock agrees with Microsoft's."),)
    words = f"The clock of this machine is {abs(skew):.0f} s {way} Microsoft's."
    if abs(skew) <= MOST_SKEW:
        return (Check("clock", True, words),)
    return (Check("clock", False, words, Reason.CLOCK_WRONG),)


def _missing(
    opened: str | None, failed: Check | None, account: GraphAccount, place: str
) -> tuple[str, ...]:
    reason = failed.reason if failed else None
    where = f"'{place}'" if place else "the site"
    words = None
    if opened == "nothing":
        kind = "delegated" if account.is_delegated else "application"
        words = (
            f"The {kind} permission Files.Read.All (or Sites.Selected, with a grant for each site) "
            "is missing, or nobody has consented to it."
        )
    elif reason is Reason.GRANT_MISSING:
        words = (
            f"The grant of {where} to app {account.client_id} is missing: Sites.Selected opens "
            "nothing by itself."
        )
    elif opened == "own" and reason is Reason.ACCESS_DENIED:
        words = f"Files.Read.All is missing: Files.Read opens the person's own drive, not {where}."
    return (words,) if words else ()


def _who(account: GraphAccount, claims: TokenClaims | None, checks: tuple[Check, ...]) -> str:
    if not checks or checks[0].ok is not True:
        return ""
    if claims is None:
        return f"account '{account.name}' (its token cannot be read)"
    app = f"app '{claims.app_name or claims.app_id}' ({claims.app_id})"
    tenant = f"of tenant {claims.tenant_id}"
    return f"{claims.user} through {app} {tenant}" if claims.user else f"{app} {tenant}"

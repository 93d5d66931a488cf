"""What people are told: troubles, what is worth telling of them, and messages. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

DAY_MS: Final = 24 * 3600 * 1000
EXPIRY_DAYS: Final = (0, 3, 14, 30)
"""How long before its end a secret, certificate or sign-in is told of; 0 once it has ended."""
QUOTA_PERCENT: Final = (100, 95, 80)
"""Shares of the page limit that are told of."""


class Severity(StrEnum):
    """How much a notice matters; the least first."""

    NOTICE = "notice"
    WARNING = "warning"
    URGENT = "urgent"

    def reaches(self, least: Severity) -> bool:
        """Whether it is at least as severe as ``least``."""
        order = list(Severity)
        return order.index(self) >= order.index(least)


class NoticeKind(StrEnum):
    """What a notice is about."""

    ACCOUNT = "account"
    EXPIRY = "expiry"
    CONNECTION = "connection"
    DRIVE = "drive"
    REMOVALS = "removals"
    FILES = "files"
    FAILING = "failing"
    IDLE = "idle"
    QUOTA = "quota"
    PART_DOWN = "part_down"
    DISK = "disk"


ONE_AT_A_TIME: Final = frozenset(set(NoticeKind) - {NoticeKind.FILES})
"""Kinds of which a subject has one at most: where the next step opens, the one before is not told
to be over."""


class Happening(StrEnum):
    """What is told of a notice."""

    OPENED = "opened"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is wrong now, as the catalog shows it.

    Attributes:
        org_id: whose it is; None where it concerns the whole installation.
        org: the name of that organization, or empty.
        subject_id: the account, connection, drive, org or part that it is about.
        subject: the same for people: ``connection 'Handbook'``.
        words: what is wrong, as sentences.
        remedy: what to do.
        command: the command to run, ready to be pasted.
        reason: a code of the closed list, where there is one.
        step: the step of a warning: days or percent.
    """

    kind: NoticeKind
    severity: Severity
    org_id: str | None
    org: str
    subject_id: str
    subject: str
    words: str
    remedy: str
    command: str
    reason: str | None = None
    step: str = ""

    @property
    def key(self) -> str:
        """By which one trouble is told once."""
        return f"{self.kind}/{self.subject_id}/{self.reason or ''}/{self.step}"

    @property
    def family(self) -> tuple[str, str] | None:
        """What stays the same from step to step; None where several may be open at once."""
        return (self.kind, self.subject_id) if self.kind in ONE_AT_A_TIME else None


@dataclass(frozen=True, slots=True)
class Subscription:
    """What one channel wants to be told.

    Attributes:
        orgs: names; empty for everything, the whole installation included.
        digest_ms: the least time between two messages that are not urgent.
    """

    channel: str
    severity: Severity = Severity.NOTICE
    orgs: frozenset[str] = frozenset()
    digest_ms: int = 0

    def wants(self, trouble: Trouble) -> bool:
        """Whether the channel is told of a trouble."""
        if not trouble.severity.reaches(self.severity):
            return False
        return not self.orgs or trouble.org in self.orgs


@dataclass(frozen=True, slots=True)
class Told:
    """One notice within a message.

    Attributes:
        count: at how many looks it was seen.
        over_at: when its cause was gone; set where ``happening`` says so.
    """

    notice_id: str
    happening: Happening
    kind: str
    severity: Severity
    org: str
    subject: str
    words: str
    remedy: str
    command: str
    reason: str | None
    count: int
    first_at: int
    last_at: int
    over_at: int | None


@dataclass(frozen=True, slots=True)
class Message:
    """What goes to one channel at once.

    Attributes:
        key: names the message; the same at every attempt, so that receivers can tell copies.
    """

    key: str
    at: int
    told: tuple[Told, ...]

    @property
    def is_urgent(self) -> bool:
        """Whether it should be read now."""
        return any(is_urgent(one.severity, one.happening) for one in self.told)

    @property
    def title(self) -> str:
        """One line that says what it is about."""
        if len(self.told) == 1:
            one = self.told[0]
            over = "Over again: " if one.happening is Happening.OVER else ""
            return f"{over}{one.subject}: {first_sentence(one.words)}"
        opened = sum(one.happening is Happening.OPENED for one in self.told)
        over_count = len(self.told) - opened
        parts = [f"{opened} new"] if opened else []
        parts += [f"{over_count} over again"] if over_count else []
        return f"{len(self.told)} notices: {', '.join(parts)}"


def is_urgent(severity: Severity, happening: Happening) -> bool:
    """Whether something is told at once, whatever the digest; that it is over never is."""
    return severity is Severity.URGENT and happening is Happening.OPENED


def first_sentence(words: str) -> str:
    """Return the first sentence of a text, without its full stop."""
    head, stop, _ = words.partition(". ")
    return head if stop else words.rstrip(".")


def expiry_step(expires_at: int | None, *, now: int) -> int | None:
    """Return the least of :data:`EXPIRY_DAYS` that is reached, None before the first."""
    if expires_at is None:
        return None
    left = expires_at - now
    return next((days for days in EXPIRY_DAYS if left <= days * DAY_MS), None)


def quota_step(used: int, limit: int | None) -> int | None:
    """Return the most of :data:`QUOTA_PERCENT` that is used; None below, or without a limit."""
    if limit is None:
        return None
    if limit <= 0:
        return QUOTA_PERCENT[0]
    return next((step for step in QUOTA_PERCENT if 100 * used >= step * limit), None)

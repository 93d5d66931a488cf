"""What is wrong with connections, their drives and their files."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING, Any

from drivefeed.catalog.progress import Standing
from drivefeed.domain.access import OF_ACCOUNT
from drivefeed.domain.explanations import Kind, explain
from drivefeed.domain.notices import DAY_MS, NoticeKind, Severity, Trouble
from drivefeed.domain.reasons import Reason
from drivefeed.domain.visible import visible
from drivefeed.domain.words import count_of
from drivefeed.services.trouble_words import (
    because,
    duration_of,
    explained,
    reason_of,
    said,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from drivefeed.catalog.troubles import ConnectionFacts, Facts

SIGN_IN = OF_ACCOUNT
"""Troubles of a drive that are those of its account: told once, however many drives it reads."""
_LEAST_SILENCE_MS = 15 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Rules:
    """When something is worth a notice; see the section ``watch`` of the settings."""

    missed_rounds: int = 10
    failed_percent: int = 20
    failed_floor: int = 10
    idle_ms: int = 6 * 3600 * 1000
    down_ms: int = 15 * 60 * 1000


def connection_troubles(
    facts: Facts, rules: Rules, waiting: Mapping[str, int], *, now: int
) -> Iterator[Trouble]:
    """Yield what is wrong with connections, their drives and their files.

    Args:
        waiting: since when the longest waiting file waits, for connections where that may be long.
    """
    by_drive: dict[str, list[ConnectionFacts]] = defaultdict(list)
    for one in facts.connections:
        by_drive[one.drive_id].append(one)
    for drive in by_drive.values():
        if drive[0].drive_attention and drive[0].drive_attention not in SIGN_IN:
            yield _drive(drive)
    for one in facts.connections:
        if one.attention:
            yield _connection(one)
        yield from _files(one)
        stands_still = one.paused or one.attention or one.drive_attention
        if not stands_still:
            yield from _failing(one, rules, now=now)
            yield from _idle(one, rules, waiting, now=now)


def _drive(connections: list[ConnectionFacts]) -> Trouble:
    one = connections[0]
    reason = str(one.drive_attention)
    meaning, remedy = explained(reason, f"It waits for a person: {reason}.")
    names = ", ".join(f"'{visible(each.name)}'" for each in connections)
    return Trouble(
        kind=NoticeKind.DRIVE,
        severity=Severity.URGENT,
        org_id=one.org_id,
        org=one.org,
        subject_id=one.drive_id,
        subject=f"drive '{visible(one.drive_name)}'",
        words=f"{meaning} Connections that wait: {names}.{said(one.drive_detail)}",
        remedy=remedy,
        command=f"drivefeed resume {_named(one)}",
        reason=reason,
    )


def _connection(one: ConnectionFacts) -> Trouble:
    reason = str(one.attention)
    is_brake = reason == Reason.MASS_REMOVAL
    meaning, remedy = explained(reason, f"It waits for a person: {reason}.")
    verb = "removals" if is_brake else "resume"
    return Trouble(
        kind=NoticeKind.REMOVALS if is_brake else NoticeKind.CONNECTION,
        severity=Severity.URGENT,
        words=f"{meaning}{said(one.detail)}",
        remedy=remedy,
        command=f"drivefeed {verb} {_named(one)}",
        reason=reason,
        **_of(one),
    )


def _files(one: ConnectionFacts) -> Iterator[Trouble]:
    """Yield one trouble for all files of a connection that wait for the same reason."""
    for (standing, reason), count in one.counts.items():
        explained = reason_of(reason)
        if standing is not Standing.FAILED or explained is None:
            continue
        if explain(explained).kind is not Kind.ATTENTION:
            continue  # rejected: the file cannot be imported, and nobody is asked
        verb = "waits" if count == 1 else "wait"
        yield Trouble(
            kind=NoticeKind.FILES,
            severity=Severity.WARNING,
            words=f"{count_of(count, 'file')} {verb} for a person: {reason}. "
            f"{explain(explained).meaning}",
            remedy=explain(explained).remedy,
            command=f"drivefeed retry --reason {reason}",
            reason=reason,
            **_of(one),
        )


def _failing(one: ConnectionFacts, rules: Rules, *, now: int) -> Iterator[Trouble]:
    since = one.last_round_at or one.created_at
    # A first listing of a large drive takes hours, and each of its pages is progress.
    allowed = DAY_MS if one.enumerating else rules.missed_rounds * one.interval_ms
    silence = now - since
    failed = one.count(Standing.FAILED)
    ended = failed + one.count(Standing.SEARCHABLE)
    if silence > max(allowed, _LEAST_SILENCE_MS):
        words = (
            f"No round of changes was completed for {duration_of(silence)}"
            f"{because(one.drive_hold)}. Changes of its folder do not arrive."
        )
        remedy, command = "See which part is in the way.", "drivefeed doctor"
    elif failed >= rules.failed_floor and 100 * failed >= rules.failed_percent * ended:
        words = (
            f"{failed} of {count_of(ended, 'file')} failed ({100 * failed // ended} %), which is "
            "more than usual."
        )
        remedy = "Look at the reasons: where one stands out, its remedy cures most of them."
        command = "drivefeed imports --state failed"
    else:
        return
    yield Trouble(
        kind=NoticeKind.FAILING,
        severity=Severity.WARNING,
        words=words,
        remedy=remedy,
        command=command,
        **_of(one),
    )


def may_be_idle(one: ConnectionFacts, rules: Rules, *, now: int) -> bool:
    """Whether files wait, and both they and the last import are old as far as is cheap to tell."""
    oldest = one.oldest_waiting_at
    return oldest is not None and now - max(oldest, one.imported_at or 0) > rules.idle_ms


def _idle(
    one: ConnectionFacts, rules: Rules, waiting: Mapping[str, int], *, now: int
) -> Iterator[Trouble]:
    """Yield a trouble where files wait and none was imported for long.

    Files that are held (quota, a pause, a part that is down) have a reason of their own and do
    not count, and neither does a folder in which nothing changed.
    """
    since = waiting.get(one.connection_id)
    if since is None or now - max(since, one.imported_at or 0) <= rules.idle_ms:
        return
    count = one.count(Standing.IN_PROGRESS, Standing.STALE)
    silence = duration_of(now - max(since, one.imported_at or 0))
    yield Trouble(
        kind=NoticeKind.IDLE,
        severity=Severity.WARNING,
        words=f"None of {count_of(count, 'file')} that should be imported was, for {silence}.",
        remedy="See whether a queue is paused or a part is in the way.",
        command="drivefeed doctor",
        **_of(one),
    )


def _named(one: ConnectionFacts) -> str:
    """Return a connection as commands take it: its name, or its id where that cannot be seen."""
    return quote(one.name if one.name == visible(one.name) else one.connection_id)


def _of(one: ConnectionFacts) -> dict[str, Any]:
    return {
        "org_id": one.org_id,
        "org": one.org,
        "subject_id": one.connection_id,
        "subject": f"connection '{visible(one.name)}'",
    }

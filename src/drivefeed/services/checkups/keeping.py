"""Findings about what holds downloads, and about what the catalog forgets by age."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from drivefeed.domain.explanations import explain
from drivefeed.domain.words import count_of
from drivefeed.services.checkups.finding import Finding, green, red, yellow
from drivefeed.services.retention import PASS_EVERY_MS
from drivefeed.services.trouble_words import duration_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from drivefeed.catalog.restoring import Restored
    from drivefeed.domain.gate import Gate

_LATE_MS: Final = 3 * PASS_EVERY_MS


def gate_findings(gates: Mapping[str, Gate]) -> Iterator[Finding]:
    """Judge what machines say of their disks, and of what waits to be indexed."""
    for host, gate in gates.items():
        if gate.reason is None:
            continue
        found = explain(gate.reason)
        judge = red if gate.is_shut else yellow
        yield judge("downloads", f"{found.meaning} {gate.words}", found.remedy, subject=host)
    if not gates:
        yield green("downloads", "Nothing keeps downloads from beginning.")


def recovery_findings(one: Restored | None, *, now: int) -> Iterator[Finding]:
    """Say how far the recovery from a restore is; nothing where there was none."""
    if one is None:
        return
    ago = duration_of(now - one.at)
    if one.done_at is None:
        words = f"The catalog was restored {ago} ago; store and index do not agree with it yet."
        yield yellow(
            "recovery", words, "Let drivefeed run until every drive has caught up; see 'status'."
        )
        return
    yield green("recovery", f"The catalog was restored {ago} ago, and everything agrees since.")
    for words in one.elsewhere:
        is_left_out = " not compared: " in words
        remedy = (
            "Once that backend can be asked, stop drivefeed, run 'drivefeed restore --done' and "
            "start it: everything is compared anew."
        )
        yield yellow("recovery", words, remedy) if is_left_out else green("recovery", words)


def retention_findings(last: tuple[int, dict[str, int]] | None, *, now: int) -> Iterator[Finding]:
    """Say when the catalog was last cleared of what is old, and of how much.

    Args:
        last: when that was, and how many rows of each kind went; None where it never was.
    """
    if last is None:
        yield green("retention", "Nothing was old enough to be looked at yet.")
        return
    at, pruned = last
    rows = sum(pruned.values())
    words = f"Old rows were last looked for {duration_of(now - at)} ago; {count_of(rows, 'row')} "
    words += "went." if not rows else f"went ({_kinds(pruned)})."
    if now - at > _LATE_MS:
        yield yellow("retention", words, "It is done once a day while drivefeed runs: start it.")
        return
    yield green("retention", words)


def _kinds(pruned: Mapping[str, int]) -> str:
    return ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in pruned.items() if count)

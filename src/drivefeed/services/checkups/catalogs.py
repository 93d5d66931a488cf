"""Findings about the catalog's database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.catalog.examination import Integrity
from drivefeed.services.checkups.finding import Finding, green, red, yellow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from drivefeed.catalog.examination import CatalogState

PART = "catalog"
_DAMAGED = (
    "Stop drivefeed, keep a copy of the file, and restore it from a backup; after that 'drivefeed "
    "verify' says what is missing where."
)

_SERVER = "Start the database or correct DRIVEFEED_DATABASE_URL; nothing is lost meanwhile."
_CLOCK_MS = 2_000


def catalog_findings(state: CatalogState, where: str) -> Iterator[Finding]:
    """Judge the state of the database.

    Args:
        where: how people call it, without a password.
    """
    if state.trouble.endswith("."):
        # Postgres was asked, and why it does not answer is a sentence of ours.
        yield red(PART, state.trouble, _SERVER)
        return
    if state.trouble:
        yield red(PART, f"{where} cannot be read: {state.trouble}.", _remedy(state.trouble))
        return
    if state.integrity is Integrity.DAMAGED:
        yield red(PART, f"{where} is damaged.", _DAMAGED)
        return
    yield _migration(state, where)
    if abs(state.clock_ahead_ms) > _CLOCK_MS:
        yield yellow(
            "catalog clock",
            f"The database's clock is {abs(state.clock_ahead_ms) / 1000:.0f} s "
            f"{'ahead of' if state.clock_ahead_ms > 0 else 'behind'} this machine's. Times are the "
            "database's.",
            "Set the clocks of both machines, and keep them set by NTP.",
        )
    if state.is_current and state.journal not in {"", "wal"}:
        yield yellow(
            "catalog journal",
            f"{where} is in journal mode '{state.journal}', so readers and writers block each "
            "other.",
            "Start drivefeed: it sets WAL. If it stays, the folder is on a network file system: "
            "move it to a local disk.",
        )


def _migration(state: CatalogState, where: str) -> Finding:
    if state.migration > state.newest:
        words = (
            f"{where} was made by a newer version of drivefeed (migration {state.migration}; this "
            f"one knows {state.newest})."
        )
        return red(PART, words, "Run that version, or restore the catalog from before it.")
    if state.migration < state.newest:
        words = f"{where} is at migration {state.migration}, and this version needs {state.newest}."
        remedy = "Stop the daemon and start 'drivefeed up' anew: it migrates. Keep a copy before."
        return red(PART, words, remedy)
    checked = {
        Integrity.GOOD: ", without damage",
        Integrity.NOT_FINISHED: ", too large to be searched for damage in the time there is",
    }.get(state.integrity, "")
    return green(PART, f"{where} is at migration {state.migration}{checked}.")


def _remedy(trouble: str) -> str:
    said = trouble.casefold()
    if "not a database" in said or "malformed" in said:
        return _DAMAGED
    if "locked" in said or "busy" in said:
        return "Find the process that holds it, or try again."
    return "Check that it exists and that the user of drivefeed may read and write it."

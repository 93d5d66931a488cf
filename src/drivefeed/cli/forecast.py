"""A plan in words: what would come in, what would not, and what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.markup import escape

from drivefeed.cli.output import new_table, say
from drivefeed.cli.words import count_of, duration_of, meaning_of, size_of
from drivefeed.domain.plan import Emptiness

if TYPE_CHECKING:
    from drivefeed.domain.plan import Change, Plan

_EMPTY: Final = {
    Emptiness.NOTHING_FOUND: "There are no files in the folder yet. What comes later is imported.",
    Emptiness.NOTHING_PERMITTED: "The folder holds something, and the account is shown nothing of "
    "it. Check its permissions in that folder.",
    Emptiness.NOTHING_ELIGIBLE: "There are files in the folder, and every one of them would be "
    "skipped:",
}


def tell_forecast(plan: Plan) -> None:
    """Print a plan."""
    if plan.emptiness is not None:
        say(f"[yellow]{_EMPTY[plan.emptiness]}[/]")
    if plan.files:
        present = f", {plan.present} of them here already" if plan.present else ""
        say(
            f"{count_of(plan.files, 'file')} of {plan.found} would be imported, "
            f"{size_of(plan.size)}, about {count_of(plan.pages, 'page')}{present}."
        )
        say(
            f"[dim]Downloads take {plan.units} of Microsoft's resource units: about "
            f"{duration_of(plan.minutes * 60)} at the limit.[/]"
        )
        table = new_table("type", "files", "size", "pages", right=frozenset({"files", "size"}))
        for kind in plan.types:
            table.add_row(
                escape(kind.ending or "no ending"),
                str(kind.files),
                size_of(kind.size),
                f"~{kind.pages}",
            )
        say(table)
    if plan.shared:
        say(f"{count_of(plan.shared, 'file')} of them with permissions of their own.")
    for skip in plan.skipped:
        say(f"{count_of(skip.files, 'file')} skipped ({skip.reason}): {meaning_of(skip.reason)}")
    if plan.change is not None:
        _tell_change(plan.change)
    if plan.first:
        say("The first by name:")
        for name in plan.first:
            say(escape(name), indent=2)


def _tell_change(change: Change) -> None:
    if not (change.added or change.removed):
        return
    say(f"+{change.added} −{change.removed} files; {change.hidden} leave search at once.")  # noqa: RUF001
    if change.braked:
        say("[yellow]So many removals at once stop and ask first: 'drivefeed removals'.[/]")

"""A plan in words and as JSON: what would come in, what would not, and what it takes."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from drivefeed.cli.output import escape, new_table, say
from drivefeed.cli.words import count_of, duration_of, instant_of, meaning_of, size_of
from drivefeed.domain.nothing import nothing_eligible, nothing_found, nothing_permitted
from drivefeed.domain.plan import Emptiness
from drivefeed.domain.policies import policy_words

if TYPE_CHECKING:
    from drivefeed.domain.plan import Change, Plan

_NUMBERS: Final = ("files", "size", "pages")


_SHOWS_NOTHING: Final = (
    "The folder says that it holds something, and shows none of it. Check what the account may "
    "read there."
)


def plan_dict(plan: Plan) -> dict[str, Any]:
    """Return a plan as JSON values; sizes in bytes, times in milliseconds since the epoch."""
    return {**asdict(plan), "policy": policy_words(plan.policy)}


def tell_plan(plan: Plan, *, with_options: bool = True, with_change: bool = True) -> None:
    """Print a plan.

    Args:
        with_options: also tell which options change, where the folder is connected already.
        with_change: also tell which files that brings and takes; without, where nothing changes
            and files are only not listed yet.
    """
    if plan.change is not None and with_change:
        if with_options:
            for option, before, after in plan.change.options:
                say(f"{option}: {escape(before)} → {escape(after)}", indent=2)
        _tell_change(plan.change)
    if plan.emptiness is not None:
        say(f"[yellow]{escape(_why_empty(plan, plan.emptiness))}[/]")
    if plan.files:
        _tell_files(plan)
    for skip in plan.skipped:
        say(
            f"[bright_black]{count_of(skip.files, 'file')} skipped[/], [bold]{skip.reason}[/], "
            f"{size_of(skip.size)}: {meaning_of(skip.reason)}"
        )
    if plan.files:
        _tell_room(plan)
        _tell_cost(plan)
        _tell_rights(plan)
        say("The first by name:")
        for name in plan.first:
            say(escape(name), indent=2)
    say(f"[dim]Counted as it was at {instant_of(plan.listed_at)}.[/]")


def _tell_files(plan: Plan) -> None:
    say(
        f"[bold]{count_of(plan.files, 'file')}[/] of {plan.found} found would be imported: "
        f"{size_of(plan.size)}, about {count_of(plan.pages, 'page')} (estimated by type and size)."
    )
    if plan.unsized:
        say(f"{count_of(plan.unsized, 'file')} of them tell no size.")
    table = new_table("type", *_NUMBERS, right=frozenset(_NUMBERS))
    for one in plan.types:
        kind = escape(one.ending or "no ending")
        table.add_row(kind, str(one.files), size_of(one.size), f"~{one.pages}")
    say(table)


def _tell_room(plan: Plan) -> None:
    if plan.free_pages is None:
        return
    words = f"Of the organization's page limit, {count_of(plan.free_pages, 'page')} are free"
    if not plan.lacking_pages:
        say(f"{words}: enough by the estimate.")
        return
    say(
        f"[yellow]{words}, about {count_of(plan.lacking_pages, 'page')} fewer than are needed.[/] "
        "Files that do not fit wait, and go on by themselves once pages are free: see 'drivefeed "
        "usage'."
    )


def _tell_cost(plan: Plan) -> None:
    if plan.present:
        say(f"{count_of(plan.present, 'file')} of them are here already: no second download.")
    seconds = plan.minutes * 60
    least = f"at least {duration_of(seconds)}" if seconds >= 1 else "less than a second"
    say(
        f"The downloads take {count_of(plan.units, 'resource unit')} of Microsoft's limit: at our "
        f"share of it {least}; bandwidth and reading come on top."
    )


def _tell_rights(plan: Plan) -> None:
    shared = (
        "not known, because the library was listed before that was asked for"
        if plan.shared is None
        else str(plan.shared)
    )
    say(f"Files with permissions of their own: {_words_of_permissions(plan, shared)}")
    say(_words_of_labels(plan))


def _words_of_permissions(plan: Plan, shared: str) -> str:
    if plan.policy.own_permissions == "exclude":
        return "left out, as counted above; each file was asked about."
    return (
        f"{shared}. That is what the listing shows as shared, and files of a shared folder are, "
        "too, but one that was only taken from some people may not be. '--own-permissions "
        "exclude' asks for each file, and leaves those out."
    )


def _words_of_labels(plan: Plan) -> str:
    """Say what is known of sensitivity labels, and why it is no more."""
    if not plan.can_be_labelled:
        return "With a sensitivity label: none, because no file is of a type that can carry one."
    most = count_of(plan.can_be_labelled, "file")
    words = (
        f"With a sensitivity label: not known, at most {most} (those of a type that can carry "
        "one). Microsoft's listings do not tell it, only a question for each file, and a plan asks "
        "none."
    )
    if plan.policy.labelled == "exclude":
        return (
            f"{words} This connection asks before each download, and leaves out the files that "
            "have one."
        )
    return f"{words} '--labelled exclude' asks before each download, and leaves those out."


def _tell_change(change: Change) -> None:
    if not (change.added or change.removed):
        say("No file comes in and none leaves.")
        return
    say(f"[bold]+{change.added} -{change.removed} files.[/]")
    if change.returning:
        verb = "is" if change.returning == 1 else "are"
        files = count_of(change.returning, "file")
        say(f"{files} of those that come {verb} shown again at once.")
    if change.removed:
        say(
            f"Of those that leave, {_with_verb(change.hidden, 'leaves', 'leave')} search at once, "
            f"to be erased after the grace; {_with_verb(change.kept, 'stays', 'stay')}, because "
            f"another connection wants {'it' if change.kept == 1 else 'them'}."
        )
    if change.braked:
        say(
            "[yellow]So many removals at once stop and ask, before anything is hidden: see "
            "'drivefeed removals'.[/]"
        )


def _with_verb(number: int, one: str, several: str) -> str:
    return f"{number} {one if number == 1 else several}"


def _why_empty(plan: Plan, emptiness: Emptiness) -> str:
    where = plan.folder or plan.drive_name
    match emptiness:
        case Emptiness.NOTHING_FOUND:
            return nothing_found(where)
        case Emptiness.NOTHING_PERMITTED:
            return nothing_permitted(where, _SHOWS_NOTHING)
        case Emptiness.NOTHING_ELIGIBLE:
            return nothing_eligible(where, {one.reason: one.files for one in plan.skipped})

"""``status``, and how the standing of a connection is told everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drivefeed.catalog.budgets import budgets_told
from drivefeed.catalog.gate import gates_told
from drivefeed.catalog.parts_down import parts_down
from drivefeed.catalog.progress import Progress, Standing, progress_of
from drivefeed.catalog.subscriptions import all_subscriptions, watched_drives
from drivefeed.catalog.usage import usage_of
from drivefeed.cli.context import existing_catalog, run, settings_for_commands
from drivefeed.cli.output import escape, new_table, on_terminal, print_json, say
from drivefeed.cli.words import count_of, duration_of
from drivefeed.domain.reasons import Reason
from drivefeed.domain.subscription import SubscriptionState
from drivefeed.services.budget_words import accounts_of, budget_dict, budget_sentence
from drivefeed.services.standings import progress_dict, troubles_of, word_of
from drivefeed.services.usage_words import usage_sentence

if TYPE_CHECKING:
    from rich.table import Table

    from drivefeed.catalog.budgets import ToldBudget
    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.gate import Gate

    _Looked = tuple[list[Progress], list[str], dict[str, Gate], dict[str, str], list[ToldBudget]]

__all__ = [
    "COLOURS",
    "limits_of",
    "progress_dict",
    "progress_table",
    "reasons_of",
    "say_reasons",
    "show_status",
    "sum_of",
    "word_of",
]

COLOURS = {
    Standing.SEARCHABLE: "green",
    Standing.IN_PROGRESS: "cyan",
    Standing.STALE: "magenta",
    Standing.HELD: "dark_orange3",
    Standing.FAILED: "red",
    Standing.SKIPPED: "bright_black",
}
"""Readable on dark and on light terminals."""

_ALWAYS = frozenset({Standing.SEARCHABLE})


def show_status(*, as_json: bool) -> None:
    """Show where the files of each connection stand, and why."""
    found, notes, gates, down, budgets = run(_looked())
    if as_json:
        print_json(
            [
                progress_dict(one) | {"parts_down": down, "budget": _budget_for(one, budgets)}
                for one in found
            ]
        )
        return
    for part, words in down.items():
        say(f"[yellow]![/] The {escape(part)} is waited for: {escape(words)}")
    if not found:
        say("No folder is connected yet.")
        return
    say(progress_table(found))
    say_reasons(found)
    for words in notes:
        say(words)
    for told in budgets:
        mark = "[yellow]![/] " if told.standing.closed_ms else ""
        who, words = accounts_of(told), budget_sentence(told.standing)
        say(f"{mark}[bold]{escape(who)}[/] at Microsoft: {escape(words)}")
    for host, gate in gates.items():
        say(f"[yellow]![/] [bold]{escape(host)}[/]: {escape(gate.words)}")


async def limits_of(catalog: Catalog) -> list[str]:
    """Return how the page limits stand, in markup; organizations without one are left out."""
    return [
        f"[bold]{escape(one.org)}[/]: {usage_sentence(one)}"
        for one in await usage_of(catalog)
        if one.limit is not None
    ]


async def untold_of(catalog: Catalog) -> list[str]:
    """Return the drives of whose changes Microsoft would not tell us, and why, in markup."""
    drives = {one.drive_id: one.name for one in await watched_drives(catalog)}
    return [
        f"[yellow]![/] Microsoft does not tell of changes in '{escape(drives[one.drive_id])}', "
        f"so it is asked as often as others: {escape(one.detail or '')}"
        for one in await all_subscriptions(catalog)
        if one.state is SubscriptionState.REFUSED and one.drive_id in drives
    ]


def _budget_for(one: Progress, budgets: list[ToldBudget]) -> dict[str, Any] | None:
    """Return the budget from which a connection's account spends, if anything is known of it."""
    connection_id = one.connection.connection_id
    return next((budget_dict(told) for told in budgets if connection_id in told.connections), None)


async def _looked() -> _Looked:
    from drivefeed.cli.health import health_of

    async with existing_catalog() as catalog:
        found = await progress_of(catalog)
        notes = [*await limits_of(catalog), *await untold_of(catalog)]
        gates, budgets = await gates_told(catalog), await budgets_told(catalog)
        told = await parts_down(catalog)
    # What this machine's process says is newer, and it can tell of the catalog itself.
    here: dict[str, str] = (await health_of(settings_for_commands())).get("down", {})
    return found, notes, gates, {name: one.words for name, one in told.items()} | here, budgets


def progress_table(found: list[Progress]) -> Table:
    """Draw the standing of all connections; standings that no file has are left out."""
    shown = [s for s in Standing if s in _ALWAYS or any(one.counts[s] for one in found)]
    numbers = ("found", *(word_of(standing) for standing in shown), "pages", "done")
    table = new_table("connection", *numbers, right=frozenset(numbers))
    table.columns[0].no_wrap = False
    for one in found:
        still = "disconnected" if one.connection.disconnected else "paused"
        mark = f" [dark_orange3]({still})[/]" if one.connection.paused else ""
        table.add_row(
            escape(one.connection.name) + mark,
            str(one.found) if one.listed else f"{one.found}…",
            *(
                f"[{COLOURS[standing]}]{one.counts[standing]}[/]" if one.counts[standing] else "0"
                for standing in shown
            ),
            str(one.pages),
            f"{one.percent} %",
        )
    return table


def sum_of(one: Progress) -> str:
    """Return the sum that must add up, in markup: found = searchable + …."""
    parts = [
        f"[{COLOURS[standing]}]{count} {word_of(standing)}[/]"
        for standing, count in one.counts.items()
        if count or standing in _ALWAYS
    ]
    return f"[bold]{one.found} found[/] = {' + '.join(parts)}"


def reasons_of(one: Progress) -> list[tuple[str, str]]:
    """Say in words why files are skipped, held or failed, and what to do.

    Returns:
        Pairs of markup: what is so, and its remedy (or nothing).
    """
    name = escape(one.connection.name)
    said = _towards_the_plan(one)
    for trouble in troubles_of(one):
        if trouble.standing is None:
            colour = "yellow" if trouble.code == Reason.PAUSED else "red"
            words = f"[{colour}]![/] [bold]{name}[/]: {trouble.meaning} {escape(trouble.detail)}"
        else:
            colour = COLOURS[trouble.standing]
            files = count_of(trouble.files, "file")
            words = f"[{colour}]{files} {trouble.standing.value}[/], [bold]{trouble.code}[/]: "
            words += trouble.meaning
        said.append((words.rstrip(), trouble.remedy))
    return said


def _towards_the_plan(one: Progress) -> list[tuple[str, str]]:
    """Say how far a connection is on its plan, while it is on its way."""
    if one.planned is None or not one.waiting:
        return []
    words = f"[bold]{escape(one.connection.name)}[/]: {one.percent} % of {one.planned} planned"
    if one.since:
        words += f", {one.since} more since"
    if one.seconds_left and not one.connection.paused:
        words += f"; about {duration_of(one.seconds_left)} left at the present pace"
    return [(f"{words}.", "")]


def say_reasons(found: list[Progress]) -> None:
    """Print why files do not move, each with its remedy."""
    for one in found:
        for words, remedy in reasons_of(one):
            if on_terminal():
                say(words)
                if remedy:
                    say(f"[dim]→ {escape(remedy)}[/]", indent=2)
            else:
                say(f"{words} → {escape(remedy)}" if remedy else words)

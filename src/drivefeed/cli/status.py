"""``status``, and how the standing of a connection is told everywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drivefeed.catalog.progress import Progress, Standing, progress_of
from drivefeed.cli.context import existing_catalog, run
from drivefeed.cli.output import escape, new_table, on_terminal, print_json, say
from drivefeed.cli.words import count_of, duration_of, meaning_of, remedy_of
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from rich.table import Table

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
_TOLD = (Standing.FAILED, Standing.HELD, Standing.SKIPPED)


def show_status(*, as_json: bool) -> None:
    """Show where the files of each connection stand, and why."""
    found = run(_progress())
    if as_json:
        print_json([progress_dict(one) for one in found])
        return
    if not found:
        say("No folder is connected yet.")
        return
    say(progress_table(found))
    say_reasons(found)


async def _progress() -> list[Progress]:
    async with existing_catalog() as catalog:
        return await progress_of(catalog)


def progress_dict(one: Progress) -> dict[str, Any]:
    """Return a connection's progress as JSON values."""
    return {
        "connection_id": one.connection.connection_id,
        "name": one.connection.name,
        "drive": one.drive_name,
        "paused": one.connection.paused,
        "attention": one.connection.attention or one.drive_attention,
        "hold": one.drive_hold,
        "detail": one.detail,
        "listed": one.listed,
        "at_rest": one.at_rest,
        "found": one.found,
        "percent": one.percent,
        "planned": one.planned,
        "since": one.since,
        "seconds_left": None if one.seconds_left is None else round(one.seconds_left),
        "pages": one.pages,
        **{standing.value: count for standing, count in one.counts.items()},
        "reasons": [
            {
                "standing": standing.value,
                "reason": why,
                "files": count,
                "meaning": meaning_of(why),
                "remedy": remedy_of(why),
            }
            for (standing, why), count in sorted(one.reasons.items())
        ],
    }


def word_of(standing: Standing) -> str:
    """Return a standing as people read it."""
    return standing.value.replace("_", " ")


def progress_table(found: list[Progress]) -> Table:
    """Draw the standing of all connections; standings that no file has are left out."""
    shown = [s for s in Standing if s in _ALWAYS or any(one.counts[s] for one in found)]
    numbers = ("found", *(word_of(standing) for standing in shown), "pages", "done")
    table = new_table("connection", *numbers, right=frozenset(numbers))
    table.columns[0].no_wrap = False
    for one in found:
        paused = " [dark_orange3](paused)[/]" if one.connection.paused else ""
        table.add_row(
            escape(one.connection.name) + paused,
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
    told = []
    told += _towards_the_plan(one)
    attention = one.connection.attention or one.drive_attention or one.drive_hold
    if attention:
        name, detail = escape(one.connection.name), escape(one.detail or "")
        words = f"[red]![/] [bold]{name}[/]: {meaning_of(attention)} {detail}".rstrip()
        told.append((words, remedy_of(attention)))
    if one.connection.paused:
        name = escape(one.connection.name)
        words = f"[yellow]![/] [bold]{name}[/]: {meaning_of(Reason.PAUSED)}"
        told.append((words, remedy_of(Reason.PAUSED)))
    for standing in _TOLD:
        for (stands, why), count in sorted(one.reasons.items()):
            if stands is standing:
                colour = COLOURS[standing]
                words = f"[{colour}]{count_of(count, 'file')} {standing.value}[/], [bold]{why}[/]: "
                told.append((words + meaning_of(why), remedy_of(why)))
    return told


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

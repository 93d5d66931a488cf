"""``doctor``: look at every part and say what is wrong and what to do."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.console import Console
from rich.table import Table

from drivefeed.cli.checkups import examine
from drivefeed.cli.context import EXIT_NOT_CLEAN, run, settings_file, settings_for_commands
from drivefeed.cli.output import escape, on_terminal, print_json, say
from drivefeed.cli.words import count_of
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.redact import redact
from drivefeed.services.checkups.finding import Colour, Finding, red

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_SHOWN = {
    Colour.GREEN: "[green]✓[/]",
    Colour.YELLOW: "[dark_orange3]![/]",
    Colour.RED: "[red]✗[/]",
    Colour.GREY: "[dim]·[/]",
}
_PART_COLUMNS = 18
_NAMED = 4


def show_findings(*, as_json: bool, strict: bool) -> None:
    """Check every part; exit code 1 if something is red, or with ``strict`` not green."""
    findings = look_at_everything()
    if as_json:
        print_json([asdict(one) for one in findings])
    else:
        for one in findings:
            _show(one)
        say(_sum_of(findings))
    bad = {Colour.RED, Colour.YELLOW, Colour.GREY} if strict else {Colour.RED}
    if any(one.colour in bad for one in findings):
        raise typer.Exit(EXIT_NOT_CLEAN)


def look_at_everything() -> list[Finding]:
    """Return what is found of the installation that the command is about.

    Settings that cannot be read are a finding as well, the only one there is then.
    """
    try:
        settings = settings_for_commands()
    except NeedsAttention as error:
        remedy = "Correct these lines; docs/settings.md lists every setting with its meaning."
        return [red("settings", one, remedy) for one in _problems(redact(str(error)))]
    from drivefeed.telemetry import keep_logs_apart

    keep_logs_apart()
    with _progress() as on_change:
        return run(examine(settings, settings_file(), on_change))


def _problems(words: str) -> list[str]:
    """Return each problem of settings, which are told together, one a line under a heading."""
    first, *problems = words.splitlines()
    return [one.strip() for one in problems] or [first]


@contextmanager
def _progress() -> Iterator[Callable[[Sequence[str]], None] | None]:
    """Show on a terminal what is being looked at; on standard error, so that output stays clean."""
    if not sys.stderr.isatty():
        yield None
        return
    with Console(stderr=True, highlight=False).status("Looking …") as status:

        def tell(names: Sequence[str]) -> None:
            more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
            listed = ", ".join(one.replace(":", " ") for one in names[:_NAMED])
            status.update(f"Looking at {escape(listed)}{more} …")

        yield tell


def _show(one: Finding) -> None:
    subject = f" ({one.subject})" if one.subject and one.subject not in one.words else ""
    words = escape(f"{one.words}{subject}")
    if not on_terminal():
        remedy = f" → {escape(one.remedy)}" if one.remedy else ""
        say(f"{one.colour:<6} {one.part:<{_PART_COLUMNS}} {words}{remedy}")
        return
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(f"{_SHOWN[one.colour]} [bold]{one.part:<{_PART_COLUMNS}}[/]", words)
    if one.remedy:
        grid.add_row("", f"[dim]→ {escape(one.remedy)}[/]")
    say(grid)


def _sum_of(findings: list[Finding]) -> str:
    counts = Counter(one.colour for one in findings)
    told = [f"{counts[colour]} {colour}" for colour in Colour if counts[colour]]
    return f"{count_of(len(findings), 'finding')}: {', '.join(told)}."

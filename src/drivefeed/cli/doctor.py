"""``doctor``: look at every part and say what is wrong and what to do."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from drivefeed.bootstrap import open_parts
from drivefeed.cli import checkups
from drivefeed.cli.checkups import GREEN, RED, YELLOW, Finding
from drivefeed.cli.context import EXIT_NOT_CLEAN, daemon_client, run, settings_for_commands
from drivefeed.cli.output import escape, on_terminal, print_json, say

if TYPE_CHECKING:
    from drivefeed.settings import Settings

_SHOWN = {GREEN: "[green]✓[/]", YELLOW: "[dark_orange3]![/]", RED: "[red]✗[/]"}
_PART_COLUMNS = 12


def show_findings(*, as_json: bool) -> None:
    """Check every part; exit code 1 if something is red."""
    findings = run(_examine(settings_for_commands()))
    if as_json:
        print_json([asdict(one) for one in findings])
    else:
        for one in findings:
            _show(one)
    if any(one.colour == RED for one in findings):
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _examine(settings: Settings) -> list[Finding]:
    findings = checkups.disk(settings)
    if any(one.colour == RED for one in findings):
        return findings
    async with open_parts(settings) as parts, daemon_client(settings) as client:
        return [
            *findings,
            Finding("catalog", GREEN, f"{settings.catalog_url}: migrated and open."),
            await checkups.daemon(client),
            *await checkups.queue(parts),
            await checkups.store(parts),
            await checkups.index(parts, client),
            *await checkups.accounts(parts, is_running=client is not None),
            *await checkups.drives(parts),
            *checkups.board(settings),
        ]


def _show(one: Finding) -> None:
    line = f"{_SHOWN[one.colour]} [bold]{one.part:<{_PART_COLUMNS}}[/]"
    if not on_terminal():
        remedy = f" → {escape(one.remedy)}" if one.remedy else ""
        say(f"{one.colour:<6} {one.part:<{_PART_COLUMNS}} {escape(one.words)}{remedy}")
        return
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(line, escape(one.words))
    if one.remedy:
        grid.add_row("", f"[dim]→ {escape(one.remedy)}[/]")
    say(grid)

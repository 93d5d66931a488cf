"""``imports``: every file, where it stands and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import typer
from rich.text import Text

from drivefeed.catalog.listing import list_files
from drivefeed.catalog.progress import Standing
from drivefeed.cli.context import existing_catalog, run
from drivefeed.cli.output import columns, escape, new_table, on_terminal, print_json, say
from drivefeed.cli.status import COLOURS, word_of
from drivefeed.cli.words import count_of, folded, size_of
from drivefeed.domain.lifecycle import State
from drivefeed.domain.reasons import Reason
from drivefeed.domain.visible import visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table

    from drivefeed.catalog.listing import ListedFile

_NUMBERS = ("pages", "chunks", "size")
_OTHER_COLUMNS = 48
"""Characters of a line that are not the path: the standing, three numbers, and what is between."""
_STANDING_COLUMNS = 22
_LEAST_PATH = 24
_ON_ONE_LINE = 20
"""Characters that a reason takes beside its standing."""
_WIDEST_PADDED = 60
_ROOMY = 72
"""A narrower terminal is shown no numbers."""


def show_imports(state: str | None, reason: str | None, limit: int, *, as_json: bool) -> None:
    """List files with where they stand and why."""
    where = _where(state, reason)
    found = run(_imports(limit=limit, **where))
    if as_json:
        print_json([asdict(one) for one in found])
        return
    if not found:
        say("No file matches." if where else "No file was found yet.")
        return
    if not on_terminal():
        for line in lines_of(found):
            say(Text(line))
        return
    say(table_of(found))
    cut = " (there may be more: --limit)" if len(found) == limit else ""
    say(f"[dim]{count_of(len(found), 'file')}{cut}[/]")


def _where(state: str | None, reason: str | None) -> dict[str, str]:
    where: dict[str, str] = {}
    if state is not None:
        wanted = state.casefold().replace(" ", "_").replace("-", "_")
        if wanted not in {*Standing, *State}:
            known = ", ".join(dict.fromkeys([*Standing, *State]))
            raise typer.BadParameter(f"There is no '{state}'; choose from {known}.")
        where["standing" if wanted in set(Standing) else "state"] = wanted
    if reason is not None:
        if reason not in {*Reason, *State}:
            known = ", ".join(sorted({*Reason, *State}))
            raise typer.BadParameter(f"There is no reason '{reason}'; choose from {known}.")
        where["reason"] = reason
    return where


async def _imports(**where: Any) -> list[ListedFile]:
    async with existing_catalog() as catalog:
        return await list_files(catalog, **where)


def table_of(found: list[ListedFile]) -> Table:
    """Draw the table; a narrow terminal gives the path the room it needs."""
    numbers = _NUMBERS if columns() >= _ROOMY else ()
    table = new_table("file", "stands", *numbers, right=frozenset(numbers))
    others = _OTHER_COLUMNS if numbers else _STANDING_COLUMNS
    longest = max(len(one.path) for one in found)
    width = max(_LEAST_PATH, columns() - others)
    between = " " if longest + _ON_ONE_LINE <= width else "\n"
    for one in found:
        standing = Standing(one.standing)
        stands = f"[{COLOURS[standing]}]{word_of(standing)}[/]"
        if standing is not Standing.SEARCHABLE:
            stands += f"{between}[dim]{one.why}[/]"
        path = "\n".join(map(escape, folded(visible(one.path), width).split("\n")))
        table.add_row(path, stands, *_numbers_of(one)[: len(numbers)])
    return table


def lines_of(found: list[ListedFile]) -> Iterator[str]:
    """One file on a line; a path that is much longer than the others moves its own line only."""
    rows = [("file", "stands", *_NUMBERS)]
    for one in found:
        why = "" if one.standing == Standing.SEARCHABLE else f" {one.why}"
        rows.append((visible(one.path), word_of(Standing(one.standing)) + why, *_numbers_of(one)))
    widths = [min(_WIDEST_PADDED, max(map(len, column))) for column in zip(*rows, strict=True)]
    for path, stands, *numbers in rows:
        words = [path.ljust(widths[0]), stands.ljust(widths[1])]
        words += [one.rjust(width) for one, width in zip(numbers, widths[2:], strict=True)]
        yield "  ".join(words).rstrip()


def _numbers_of(one: ListedFile) -> tuple[str, str, str]:
    return (
        str(one.pages) if one.pages is not None else "",
        str(one.chunks) if one.chunks is not None else "",
        size_of(one.size) if one.size is not None else "",
    )

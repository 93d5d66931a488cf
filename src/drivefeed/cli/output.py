"""How commands print: tables and colours on a terminal, plain lines elsewhere, JSON for programs.

Where there is no terminal, nothing is wrapped and no box is drawn, so that ``grep`` and ``less``
see one thing on one line.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import typer
from rich import markup
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from drivefeed.domain.visible import visible, visible_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import ConsoleOptions, RenderableType
    from rich.style import Style

_NO_TERMINAL_COLUMNS = 2_000
"""Wide enough for every table; columns are no wider than what they hold."""
_LEAST_COLUMNS = 40


class VisibleConsole(Console):
    """Sends no control characters but its own to the terminal, whoever forgot to escape a name."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the pieces of something, with what cannot be seen in them shown."""
        for text, style, control in super().render(renderable, options):
            if control:
                yield Segment(text, style, control)
            else:
                yield Segment(visible_lines(text), _without_strange_link(style))


def _without_strange_link(style: Style | None) -> Style | None:
    if style is None or style.link is None or visible(style.link) == style.link:
        return style
    return style.update_link(None)


@cache
def console() -> Console:
    """Return the console of standard output."""
    terminal = VisibleConsole(highlight=False, emoji=False)
    if terminal.is_terminal:
        return terminal
    return VisibleConsole(highlight=False, emoji=False, width=_NO_TERMINAL_COLUMNS)


def on_terminal() -> bool:
    """Whether a person looks at standard output."""
    return console().is_terminal


def columns() -> int:
    """Return how wide the output is, in characters."""
    return max(_LEAST_COLUMNS, console().width)


def say(words: RenderableType = "", *, indent: int = 0) -> None:
    """Print something; on a terminal, lines that are too long continue under their beginning.

    Args:
        words: Rich markup, or anything that Rich can show.
        indent: columns to leave free on the left.
    """
    from rich.padding import Padding

    if isinstance(words, str):
        words = Text.from_markup(words)
    if on_terminal():
        console().print(Padding(words, (0, 0, 0, indent)) if indent else words)
    elif isinstance(words, Text):
        console().print(Text(" " * indent) + words, soft_wrap=True)
    else:
        # A table fills its columns with blanks, which no program wants.
        with console().capture() as printed:
            console().print(words)
        lines = (line.rstrip(" ") for line in printed.get().split("\n"))
        console().file.write("\n".join(lines))


def escape(name: str) -> str:
    """Return text of others for use in Rich markup: shown as it is, and on one line."""
    return markup.escape(visible(name))  # noqa: TID251 - the one place that may


def echo(words: str, *, err: bool = False) -> None:
    """Print lines as they are, for copying: without colours and without markup."""
    typer.echo(visible_lines(words), err=err)


def new_table(*names: str, right: frozenset[str] = frozenset()) -> Table:
    """Return a table without lines but the one under its header, or without any.

    Args:
        names: headings of the columns.
        right: those whose values are numbers.
    """
    table = Table(
        box=SIMPLE_HEAD if on_terminal() else None,
        header_style="bold",
        pad_edge=False,
        show_edge=False,
        padding=(0, 2, 0, 0),
    )
    for name in names:
        table.add_column(name, justify="right" if name in right else "left", no_wrap=True)
    return table


def print_json(value: Any) -> None:
    """Print for programs: JSON and nothing else."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    words = json.dumps(value, default=str, indent=2, ensure_ascii=encoding != "utf8")
    # JSON leaves DEL and C1 as they are; how they are shown is how JSON escapes them.
    sys.stdout.write(visible_lines(words) + "\n")
    sys.stdout.flush()

"""How commands print: tables and colours on a terminal, plain lines elsewhere, JSON for programs.

Where there is no terminal, nothing is wrapped and no box is drawn, so that ``grep`` and ``less``
see one thing on one line.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

from rich import markup
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from drivefeed.domain.visible import visible

if TYPE_CHECKING:
    from rich.console import RenderableType

_NO_TERMINAL_COLUMNS = 2_000
"""Wide enough for every table; columns are no wider than what they hold."""
_LEAST_COLUMNS = 40


@cache
def console() -> Console:
    """Return the console of standard output."""
    terminal = Console(highlight=False, emoji=False)
    if terminal.is_terminal:
        return terminal
    return Console(highlight=False, emoji=False, width=_NO_TERMINAL_COLUMNS)


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
        console().print(words)


def escape(name: str) -> str:
    """Return text of others for use in Rich markup: shown as it is, and on one line."""
    return markup.escape(visible(name))  # noqa: TID251 - the one place that may


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
    sys.stdout.write(words + "\n")
    sys.stdout.flush()

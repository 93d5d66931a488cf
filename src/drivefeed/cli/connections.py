"""The commands about a file that declares connections, as they are typed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from drivefeed.cli.once import Commands

_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]
_File = Annotated[Path, typer.Argument(help="A TOML file with [[connections]].", readable=False)]
_Prune = Annotated[
    bool,
    typer.Option("--prune", help="Pause what the file does not declare any more; erase nothing."),
]
_Yes = Annotated[
    bool, typer.Option("--yes", help="Pause also where that is more than half; do not ask.")
]
_Count = Annotated[
    bool,
    typer.Option("--count", help="Count what would be imported as well; lists whole libraries."),
]

app = Commands(
    name="connections", help="Declare many connections in one file.", no_args_is_help=True
)


@app.command()
def plan(
    file: _File, *, prune: _Prune = False, count: _Count = False, as_json: _Json = False
) -> None:
    """Show what applying a file would do; exit code 3 with all problems if it has any."""
    from drivefeed.cli.connections_work import declare

    declare(file, apply=False, prune=prune, count=count, as_json=as_json)


@app.command()
def apply(
    file: _File,
    *,
    prune: _Prune = False,
    yes: _Yes = False,
    count: _Count = False,
    as_json: _Json = False,
) -> None:
    """Connect and change what a file declares: all of it, or nothing if one entry is wrong."""
    from drivefeed.cli.connections_work import declare

    declare(file, apply=True, prune=prune, yes=yes, count=count, as_json=as_json)

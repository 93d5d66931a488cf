"""The commands that keep a copy of the catalog, as they are typed."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - Typer reads the annotations
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write; it must not be there yet.")],
    *,
    as_json: Json = False,
) -> None:
    """Copy the catalog into a file, while everything runs.

    What is in Postgres is copied by pg_dump; the command to run is printed.
    """
    from drivefeed.cli.backup import back_up

    back_up(file, as_json=as_json)


def restore(
    file: Annotated[
        Path | None, typer.Argument(help="A backup; without, with --done, the database itself.")
    ] = None,
    *,
    done: Annotated[
        bool,
        typer.Option(
            "--done", help="The database was put back by its own means; compare everything anew."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Put a backup of the catalog in its place; nothing of drivefeed may run.

    What was there stays beside it. At the next start, store and index are made to agree with it;
    nothing is charged twice.
    """
    if (file is None) is not done:
        raise typer.BadParameter("Name a file, or say --done.")
    from drivefeed.cli.backup import restore_from

    restore_from(file, as_json=as_json)

"""The commands that compare, mend and forget, as they are typed.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]


def forget(
    path: Annotated[str, typer.Argument(help="The end of a file's path, or its item id.")],
    *,
    undo: Annotated[bool, typer.Option("--undo", help="Take it in again.")] = False,
    as_json: Json = False,
) -> None:
    """Erase one file now, and leave it out from now on, whatever is listed; --undo ends that."""
    from drivefeed.cli.leaving import forget_files

    forget_files(path, undo=undo, as_json=as_json)


def verify(
    connection: Annotated[
        str | None, typer.Option("--connection", help="Name or id of one connection; all without.")
    ] = None,
    *,
    repair: Annotated[bool, typer.Option("--repair", help="Mend what is found.")] = False,
    foreign: Annotated[
        bool,
        typer.Option(
            "--foreign", help="With --repair: also remove what drivefeed did not name itself."
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare source, catalog, store and index; exit code 1 if they do not agree.

    A repair downloads and charges nothing that it need not, and removes nothing that the source
    has not been asked about.
    """
    if foreign and not repair:
        raise typer.BadParameter("--foreign goes with --repair.")
    from drivefeed.cli.verify import show_certificate

    show_certificate(connection, repair=repair, foreign=foreign, as_json=as_json)

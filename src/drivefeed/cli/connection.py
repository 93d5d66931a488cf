"""The commands about one connection, as they are typed; what they do is in ``connection_work``.

Nothing heavy is imported before a command runs, so that ``--help`` answers at once.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer

from drivefeed.cli.once import Commands
from drivefeed.cli.policy_flags import with_policy_flags

_Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]
_Which = Annotated[str, typer.Argument(help="Name or id of a connection.")]

app = Commands(name="connection", help="Look at a connection and change it.", no_args_is_help=True)


@app.command("list")
def list_all(*, as_json: _Json = False) -> None:
    """List the connections: which folder of which drive, and what they want."""
    from drivefeed.cli.connection_work import list_connections

    list_connections(as_json=as_json)


@app.command()
def show(which: _Which, *, as_json: _Json = False) -> None:
    """Show a connection: its options, its plan, and who changed what."""
    from drivefeed.cli.connection_work import show_connection

    show_connection(which, as_json=as_json)


@app.command()
def rename(
    which: _Which,
    name: Annotated[str, typer.Argument(help="What it will be called.")],
    *,
    as_json: _Json = False,
) -> None:
    """Give a connection another name."""
    from drivefeed.cli.connection_work import rename_connection

    rename_connection(which, name, as_json=as_json)


@app.command()
def pause(which: _Which, *, as_json: _Json = False) -> None:
    """Stop a connection from taking anything new; what runs is finished."""
    from drivefeed.cli.control import pause_connections

    pause_connections(which, paused=True, as_json=as_json)


@app.command()
def resume(which: _Which, *, as_json: _Json = False) -> None:
    """Let a connection flow again."""
    from drivefeed.cli.control import pause_connections

    pause_connections(which, paused=False, as_json=as_json)


@app.command()
def disconnect(
    which: _Which,
    *,
    erase: Annotated[
        bool,
        typer.Option("--erase/--keep", help="Erase what it brought, or keep it searchable."),
    ],
    sign_out: Annotated[
        bool, typer.Option("--sign-out", help="Also remove the credential of its account.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before erasing.")] = False,
    as_json: _Json = False,
) -> None:
    """Stop following a folder for good, and keep or erase what it brought; gives a receipt."""
    from drivefeed.cli.leaving import disconnect_one

    disconnect_one(which, erase=erase, sign_out=sign_out, yes=yes, as_json=as_json)


@app.command()
def receipt(
    which: Annotated[
        str | None, typer.Argument(help="Id of a connection that was disconnected; all without.")
    ] = None,
    *,
    as_json: _Json = False,
) -> None:
    """Show what became of connections that were disconnected; ids and numbers, no content."""
    from drivefeed.cli.leaving import show_receipts

    show_receipts(which, as_json=as_json)


@app.command("set")
@with_policy_flags
def set_options(
    which: _Which,
    *,
    written: dict[str, Any],
    plan: Annotated[bool, typer.Option("--plan", help="Only show what would happen.")] = False,
    apply: Annotated[bool, typer.Option("--apply", help="Change it without asking.")] = False,
    as_json: _Json = False,
) -> None:
    """Change what a connection wants: show +n -m files first, then do it.

    Without --plan and --apply it asks on a terminal, and only shows the plan elsewhere. Options
    that are not given stay as they are.
    """
    if plan and apply:
        raise typer.BadParameter("Say either --plan or --apply.")
    from drivefeed.cli.connection_work import change_connection

    change_connection(which, written, plan=plan, apply=apply, as_json=as_json)


@with_policy_flags
def plan(which: _Which, *, written: dict[str, Any], as_json: _Json = False) -> None:
    """Show what other options would do to a connection; changes nothing."""
    from drivefeed.cli.connection_work import change_connection

    change_connection(which, written, plan=True, apply=False, as_json=as_json)

"""Every command as it is typed: its arguments, its options and what it is for.

Nothing is imported before a command runs, so that ``--help`` and ``version`` answer at once.
"""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - the table below is made of them
from pathlib import Path  # noqa: TC003 - Typer reads the annotations
from typing import Annotated

import typer

from drivefeed.cli import access, beginning, keep, mend, roles
from drivefeed.cli.choose import browse, connect
from drivefeed.cli.connection import plan

_LONGEST_GRACE = 10 * 365 * 86_400
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs, and nothing else.")]
Which = Annotated[str | None, typer.Argument(help="Name or id of a connection; all without.")]


def demo(
    folder: Annotated[
        Path | None,
        typer.Argument(help="The folder to serve as OneDrive; sample documents without one."),
    ] = None,
    *,
    once: Annotated[
        bool, typer.Option("--once", help="End when every file has its outcome.")
    ] = False,
    slow: Annotated[bool, typer.Option("--slow", help="Take time, so that one can watch.")] = False,
    fail: Annotated[
        bool,
        typer.Option(
            "--fail",
            help="Let the first download be refused; with --once, clear and retry it as well.",
        ),
    ] = False,
    grace: Annotated[
        float,
        typer.Option(min=0, max=_LONGEST_GRACE, help="Seconds until removed content is erased."),
    ] = 60.0,
    as_json: Json = False,
) -> None:
    """Serve a folder as OneDrive and make it searchable, before your eyes.

    While it runs on a terminal, keys simulate a failure, clear it, stop the workers and start them
    again. Edit, rename and delete files in the folder, and watch it follow.
    """
    from drivefeed.cli.demo import Wishes, run_demo

    run_demo(folder, Wishes(once=once, slow=slow, fail=fail, grace=grace, as_json=as_json))


def up(*, as_json: Annotated[bool, typer.Option("--json", help="Logs as JSON.")] = False) -> None:
    """Run everything in one process, until SIGTERM, SIGHUP or Ctrl-C."""
    from drivefeed.cli.serve import up as run_up

    run_up(as_json=as_json)


def web(
    host: Annotated[
        str | None, typer.Option(help="The address to bind; 127.0.0.1 without.")
    ] = None,
    port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="8765 without; 0 for any that is free.")
    ] = None,
    org: Annotated[str | None, typer.Option(help="Whom --open signs in.")] = None,
    *,
    opens: Annotated[
        bool, typer.Option("--open", help="Print a link that signs in, and open a browser.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Serve the status page: progress, what needs a person, each file's story. It only reads."""
    from drivefeed.cli.web import serve_pages

    serve_pages(host, port, org, opens=opens, as_json=as_json)


def status(*, as_json: Json = False) -> None:
    """Show where the files of each connection stand, and why."""
    from drivefeed.cli.status import show_status

    show_status(as_json=as_json)


def health(
    *,
    strict: Annotated[
        bool, typer.Option("--strict", help="Also where it waits for a part that is down.")
    ] = False,
    ready: Annotated[bool, typer.Option("--ready", help="Also while it starts or ends.")] = False,
    as_json: Json = False,
) -> None:
    """Ask what runs here whether it does its work; exit code 1 if it does not, or none runs."""
    from drivefeed.cli.health import show_health

    show_health(strict=strict, ready=ready, as_json=as_json)


def imports(
    state: Annotated[
        str | None,
        typer.Option(help="Only this standing (searchable, failed, held …) or import state."),
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Only this reason code.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 10_000,
    *,
    as_json: Json = False,
) -> None:
    """List files with where they stand and why."""
    from drivefeed.cli.imports import show_imports

    show_imports(state, reason, limit, as_json=as_json)


def why(
    path: Annotated[str, typer.Argument(help="The end of a file's path, or its item id.")],
    *,
    as_json: Json = False,
) -> None:
    """Tell the whole story of a file: each version, each step, each reason."""
    from drivefeed.cli.why import tell_why

    tell_why(path, as_json=as_json)


def search(
    query: Annotated[list[str], typer.Argument(help="Words, or a question.")],
    limit: Annotated[int, typer.Option(min=1, max=100, help="At most so many documents.")] = 10,
    org: Annotated[str | None, typer.Option(help="Whose documents.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Find documents by words and by meaning; exit code 1 if there are none."""
    from drivefeed.cli.search import show_hits

    show_hits(" ".join(query), limit, org, as_json=as_json)


def retry(
    which: Annotated[
        str | None,
        typer.Argument(
            help="The end of a file's path, or a connection's name; all that failed without."
        ),
    ] = None,
    reason: Annotated[str | None, typer.Option(help="Only what has this reason code.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Try files again that failed, are held, or wait for a person; and drives that wait."""
    from drivefeed.cli.control import retry_failed

    retry_failed(which, reason, as_json=as_json)


def pause(which: Which = None, *, as_json: Json = False) -> None:
    """Stop connections from taking anything new; what runs is finished."""
    from drivefeed.cli.control import pause_connections

    pause_connections(which, paused=True, as_json=as_json)


def resume(which: Which = None, *, as_json: Json = False) -> None:
    """Let connections flow again."""
    from drivefeed.cli.control import pause_connections

    pause_connections(which, paused=False, as_json=as_json)


def removals(
    which: Which = None,
    *,
    approve: Annotated[bool, typer.Option("--approve", help="Remove them.")] = False,
    discard: Annotated[bool, typer.Option("--discard", help="Keep them.")] = False,
    as_json: Json = False,
) -> None:
    """Show removals that wait for a decision; approve or discard them."""
    if approve and discard:
        raise typer.BadParameter("Say either --approve or --discard.")
    from drivefeed.cli.control import decide_removals

    decide_removals(which, approve=approve, discard=discard, as_json=as_json)


def doctor(
    *,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit code 1 also for what is yellow or unknown.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Check every part of the installation; exit code 1 if something is red."""
    from drivefeed.cli.doctor import show_findings

    show_findings(as_json=as_json, strict=strict)


def support_bundle(
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The ZIP to write.", readable=False)
    ] = None,
    log: Annotated[
        Path | None, typer.Option("--log", help="The log, where it is kept.", readable=False)
    ] = None,
    *,
    with_names: Annotated[
        bool,
        typer.Option("--with-names", help="Leave names of files, people and tenants in."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Write a ZIP for whoever is asked for help, without secrets and names."""
    from drivefeed.cli.support_bundle import make_bundle

    make_bundle(output, log, with_names=with_names, as_json=as_json)


def reindex(
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            help="local, multilingual, or a name of [embeddings] in the settings; what "
            "[embedding] asks for without.",
        ),
    ] = None,
    org: Annotated[str | None, typer.Option(help="Only this one, to what it asks for.")] = None,
    *,
    look: Annotated[bool, typer.Option("--status", help="Only tell how it stands.")] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Stop it, and remove what was built.")
    ] = False,
    leave_out: Annotated[
        bool, typer.Option("--leave-out", help="Swap without files that cannot be read again.")
    ] = False,
    anew: Annotated[
        bool,
        typer.Option("--anew", help="Build it with the same model: it was lost or damaged."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Change the embedding model: build a second index beside, then swap; search goes on.

    Nothing is downloaded again, and nothing is charged. It may be stopped and goes on later.
    """
    from drivefeed.cli.reindex import reindex_all

    reindex_all(to, org, leave_out=leave_out, anew=anew, look=look, cancel=cancel, as_json=as_json)


def queues(*, as_json: Json = False) -> None:
    """List the queues: what each does, its concurrency, attempts and retention."""
    from drivefeed.cli.serve import show_queues

    show_queues(as_json=as_json)


def board_env(*, as_json: Json = False) -> None:
    """Print shell exports with which Bull Board finds the queues of the running daemon."""
    from drivefeed.cli.serve import show_board_environment

    show_board_environment(as_json=as_json)


def version(*, as_json: Json = False) -> None:
    """Print the version."""
    from drivefeed import __version__

    typer.echo(f'{{"version": "{__version__}"}}' if as_json else f"drivefeed {__version__}")


PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    "Set up": (beginning.init,),
    "Run": (demo, up, roles.scheduler, roles.worker, web),
    "Choose": (browse, connect, plan),
    "Look": (status, imports, why, search),
    "Decide": (retry, pause, resume, removals, mend.forget, reindex),
    "Connect": (access.probe, access.registration),
    "Examine": (mend.verify, doctor, health, support_bundle, queues, board_env, version),
    "Keep": (keep.backup, keep.restore),
}
"""The commands, in the order and under the headings in which ``--help`` shows them."""

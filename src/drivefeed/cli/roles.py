"""``scheduler`` and ``worker``: parts of the whole as processes of their own."""

from __future__ import annotations

from typing import Annotated

import typer

_AsJson = Annotated[bool, typer.Option("--json", help="Logs as JSON.")]


def scheduler(*, as_json: _AsJson = False) -> None:
    """Wake drives, send what is due and free what dead workers held; several may run."""
    from drivefeed.cli.serve import run_role
    from drivefeed.roles import SCHEDULER

    run_role(SCHEDULER, as_json=as_json)


def worker(
    queues: Annotated[
        str, typer.Option(help="Only these, such as transfer,index; 'drivefeed queues' lists them.")
    ] = "",
    *,
    as_json: _AsJson = False,
) -> None:
    """Work on the jobs of some queues, or of all; run as many as you like."""
    from drivefeed.cli.serve import run_role
    from drivefeed.roles import worker_for

    run_role(worker_for(queues.split(",")), as_json=as_json)

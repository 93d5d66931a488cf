"""``up`` and the roles of many processes, and what the board needs to know."""

from __future__ import annotations

import asyncio
import shlex
from typing import TYPE_CHECKING

import typer

from drivefeed.cli.context import run, settings_for_commands
from drivefeed.cli.output import columns, new_table, on_terminal, print_json, say
from drivefeed.cli.words import duration_of
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from drivefeed.roles import Role
    from drivefeed.settings import Settings

END_WITHIN_SECONDS = 7.0
"""After the grace of running jobs: how long closing everything may take."""
_OTHER_COLUMNS = 36
_LEAST_PURPOSE = 24


def up(*, as_json: bool) -> None:
    """Run everything in one process, until SIGTERM, SIGHUP or Ctrl-C."""
    from drivefeed.roles import UP

    run_role(UP, as_json=as_json)


def run_role(role: Role, *, as_json: bool) -> None:
    """Run what a role does, until SIGTERM, SIGHUP or Ctrl-C.

    Raises:
        NeedsAttention: it is one process of many, and a part is for one process alone.
    """
    from drivefeed.roles import require_shared
    from drivefeed.telemetry import configure_logs

    settings = settings_for_commands()
    if not role.is_whole:
        require_shared(settings, role)
    configure_logs(json=as_json or settings.log_json, level=settings.log_level)
    run(_serve(settings, role))


async def _serve(settings: Settings, role: Role) -> None:
    from drivefeed.bootstrap import open_parts
    from drivefeed.cli.ground import Ground
    from drivefeed.cli.interrupts import Interrupts
    from drivefeed.cli.systemd import READY, STOPPING, Systemd
    from drivefeed.daemon import Daemon
    from drivefeed.telemetry import log

    systemd = Systemd()
    most = settings.shutdown_seconds + END_WITHIN_SECONDS
    # From here on: a signal that comes while the catalog migrates or a part starts ends that.
    with (
        Interrupts(most_seconds=most) as interrupts,
        Ground(settings, interrupts) as ground,
    ):
        try:
            async with open_parts(settings) as parts, asyncio.TaskGroup() as group:
                ground.hold()
                daemon = Daemon(parts, role=role)
                interrupts.end_with(daemon)
                running = group.create_task(daemon.run(), name="daemon")
                telling = group.create_task(systemd.keep_telling(), name="systemd")
                ready = group.create_task(daemon.ready.wait(), name="ready")
                await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
                if ready.done():
                    systemd.tell(READY)
                stopping = group.create_task(daemon.stopping.wait(), name="stopping")
                await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
                systemd.tell(STOPPING)
                await asyncio.wait({running})
                for one in (ready, stopping, telling):
                    one.cancel()
        except asyncio.CancelledError:
            if not interrupts.count:
                raise
            log("daemon").info("stopped", words="It was ended while it started.")


def show_queues(*, as_json: bool) -> None:
    """List the queues of the table in code, with this installation's prefix."""
    from drivefeed.queue.table import queues_json

    described = queues_json(settings_for_commands().queue_prefix)
    if as_json:
        print_json(described)
        return
    numbers = ("at once", "attempts", "backoff")
    table = new_table("queue", *numbers, "what its jobs do", right=frozenset(numbers))
    table.columns[-1].no_wrap = not on_terminal()
    table.columns[-1].max_width = max(_LEAST_PURPOSE, columns() - _OTHER_COLUMNS)
    for one in described["queues"]:
        first, most = one["backoff"]["first_s"], one["backoff"]["max_s"]
        table.add_row(
            f"[bold]{one['name']}[/]",
            str(one["concurrency"]),
            str(one["attempts"]),
            f"{first} s … {duration_of(most)}",
            one["purpose"],
        )
    say(table)


def show_board_environment(*, as_json: bool) -> None:
    """Print shell exports for the board.

    Raises:
        NeedsAttention: no daemon runs, so there are no queues.
    """
    from drivefeed.queue.embedded import embedded_url

    settings = settings_for_commands()
    if settings.redis_url is not None:
        url: str | None = settings.redis_url.get_secret_value()
    else:
        url = embedded_url(settings.data_dir / "queue")
    if url is None:
        raise NeedsAttention(
            f"No drivefeed runs on '{settings.data_dir}'. Start it first, in another terminal: "
            "'make demo' or 'drivefeed up'.",
            reason=Reason.MISCONFIGURED,
        )
    exports = {"DRIVEFEED_REDIS_URL": url, "DRIVEFEED_QUEUE_PREFIX": settings.queue_prefix}
    if as_json:
        print_json(exports)
        return
    for name, value in exports.items():
        typer.echo(f"export {name}={shlex.quote(value)}")

"""``up`` and the roles of many processes, and what the board needs to know."""

from __future__ import annotations

import asyncio
import shlex
import signal
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

_OTHER_COLUMNS = 36
_LEAST_PURPOSE = 24


def up(*, as_json: bool) -> None:
    """Run everything in one process, until SIGTERM or Ctrl-C."""
    from drivefeed.roles import UP

    run_role(UP, as_json=as_json)


def run_role(role: Role, *, as_json: bool) -> None:
    """Run what a role does, until SIGTERM or Ctrl-C.

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
    from drivefeed.daemon import Daemon

    async with open_parts(settings) as parts:
        daemon = Daemon(parts, role=role)
        loop = asyncio.get_running_loop()
        # The second signal ends at once.
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, daemon.stop)
        await daemon.run()


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

"""``up``, and what the board needs to know."""

from __future__ import annotations

import asyncio
import json
import shlex
import signal
from typing import TYPE_CHECKING, Annotated

import typer

from drivefeed.bootstrap import Surroundings, open_parts
from drivefeed.cli.context import console, run, settings_for_commands
from drivefeed.daemon import Daemon
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.queue.embedded import embedded_url
from drivefeed.queue.table import queues_json
from drivefeed.telemetry import configure_logs

if TYPE_CHECKING:
    from drivefeed.settings import Settings


def up() -> None:
    """Run everything in one process, until SIGTERM or Ctrl-C."""
    settings = settings_for_commands()
    configure_logs(json=settings.log_json, level=settings.log_level)
    run(_up(settings))


async def _up(settings: Settings) -> None:
    async with open_parts(settings, Surroundings.real()) as parts:
        daemon = Daemon(parts)
        stop_on_signals(daemon)
        await daemon.run()


def stop_on_signals(daemon: Daemon) -> None:
    """End in order on SIGTERM and Ctrl-C; at once on the second."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, daemon.stop)


def queues(*, as_json: Annotated[bool, typer.Option("--json")] = False) -> None:
    """List the queues: what each does, its concurrency, attempts and retention."""
    table = queues_json(settings_for_commands().queue_prefix)
    if as_json:
        typer.echo(json.dumps(table, indent=2))
        return
    for one in table["queues"]:
        console.print(f"[bold]{one['name']:<9}[/] {one['purpose']}")


def board_env() -> None:
    """Print shell exports with which Bull Board finds the queues of the running daemon."""
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
    typer.echo(f"export DRIVEFEED_REDIS_URL={shlex.quote(url)}")
    typer.echo(f"export DRIVEFEED_QUEUE_PREFIX={shlex.quote(settings.queue_prefix)}")

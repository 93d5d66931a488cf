"""``demo``: a folder of this machine, served as OneDrive, becomes searchable."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from drivefeed.bootstrap import Surroundings, open_parts
from drivefeed.cli import context
from drivefeed.cli.context import EXIT_NOT_CLEAN, LAST_DEMO_FILE, SETTINGS_NAME, run
from drivefeed.cli.ending import Ending, say_ending
from drivefeed.cli.ground import Ground
from drivefeed.cli.interrupts import Interrupts
from drivefeed.cli.lines import Lines, Silence
from drivefeed.cli.output import console, on_terminal, print_json, say
from drivefeed.cli.show import SLOW_SECONDS, Show
from drivefeed.cli.simulator import simulator
from drivefeed.daemon import Daemon
from drivefeed.domain.errors import DrivefeedError, NeedsAttention, PartDown
from drivefeed.domain.reasons import Reason
from drivefeed.queue.embedded import alone_on
from drivefeed.telemetry import configure_logs, log

if TYPE_CHECKING:
    from drivefeed.cli.scene import Display
    from drivefeed.settings import Settings

_HOME = Path("drivefeed-demo")


@dataclass(frozen=True, slots=True)
class Wishes:
    """How the demo is to run; see the options of the command."""

    once: bool
    slow: bool
    fail: bool
    grace: float
    as_json: bool


def run_demo(folder: Path | None, wishes: Wishes) -> None:
    """Run the demo; with ``once``, exit code 1 if not every file has an outcome or parts differ."""
    if importlib.util.find_spec("graphsim") is None:
        raise NeedsAttention(
            "The demo needs graphsim: install drivefeed[local,sim].", reason=Reason.MISCONFIGURED
        )
    served = _served(folder)
    data = (context.options.data_dir or _data_for(served)).absolute()
    if data.resolve().is_relative_to(served.resolve()):
        raise NeedsAttention(
            f"The demo keeps its data in '{data}', inside of the folder that it is to serve: it "
            "would import its own files. Start it from another place, or serve a folder below.",
            reason=Reason.MISCONFIGURED,
        )
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    with alone_on(data / "queue", name="demo"):
        log_file = (data / "drivefeed.log").open("a", encoding="utf-8")
        try:
            configure_logs(json=True, stream=log_file)
            ending = run(_until_interrupted(served, data, wishes, is_sample=folder is None))
        finally:
            with suppress(OSError):  # where the disk is full, the last lines are lost
                log_file.close()
    if ending is None:
        return
    if wishes.as_json:
        print_json(ending.as_dict())
    else:
        say_ending(ending, served, data)
    if wishes.once and not ending.is_clean and not ending.interrupted:
        raise typer.Exit(EXIT_NOT_CLEAN)


def _served(folder: Path | None) -> Path:
    if folder is None:
        from drivefeed.sample import write_sample

        served = _HOME / "OneDrive"
        write_sample(served)
        return served.absolute()
    if not folder.is_dir():
        words = (
            f"'{folder}' is no folder; name the folder it lies in."
            if folder.exists()
            else f"There is no folder '{folder}'."
        )
        raise NeedsAttention(words, reason=Reason.MISCONFIGURED)
    return folder.absolute()


def _data_for(served: Path) -> Path:
    name = hashlib.sha256(os.fsencode(served)).hexdigest()[:8]
    return (_HOME / f"data-{served.name[:40]}-{name}").absolute()


async def _until_interrupted(
    served: Path, data: Path, wishes: Wishes, *, is_sample: bool
) -> Ending | None:
    """Run the demo; None where it was ended before anything could be shown."""
    with Interrupts() as interrupts:
        try:
            return await _demo(served, data, wishes, interrupts, is_sample=is_sample)
        except asyncio.CancelledError:
            if interrupts.count:
                return None
            raise
        except DrivefeedError as error:
            # The same Ctrl-C may end a part that was on its way up.
            if interrupts.count:
                log("demo").warning("ended_while_starting", error=str(error))
                return None
            if not await asyncio.to_thread(served.is_dir):
                # graphsim can only say that it is busy, as Microsoft does.
                raise NeedsAttention(
                    f"The folder '{served}' that the demo serves is gone. Put it back, or name "
                    "another one, and start the demo again; what was read of it is kept.",
                    reason=Reason.FOLDER_GONE,
                ) from error
            raise


async def _demo(
    served: Path, data: Path, wishes: Wishes, interrupts: Interrupts, *, is_sample: bool
) -> Ending:
    async with simulator(served, data) as sim:
        _remember(data)
        settings = settings_of_demo(sim.endpoints, served, data, grace=wishes.grace)
        async with AsyncExitStack() as stack:
            ground = stack.enter_context(Ground(settings, interrupts))
            parts = await stack.enter_async_context(open_parts(settings, Surroundings.real()))
            ground.hold()
            daemon = Daemon(parts, pace_seconds=SLOW_SECONDS if wishes.slow else 0.0)
            interrupts.end_with(daemon)
            running = asyncio.create_task(daemon.run(), name="daemon")
            show = Show(daemon, sim, served, _display(wishes), is_sample=is_sample)
            interrupts.on_exit = show.close
            try:
                if wishes.fail:
                    await show.fail()
                await (show.once(running) if wishes.once else show.go_on(running))
            finally:
                show.close()
                by_a_person = interrupts.count or (show.moves and on_terminal())
                if by_a_person and not wishes.as_json and not running.done():
                    say("[dim]Running steps are finished first; Ctrl-C ends at once.[/]")
                if not running.done() and not interrupts.count:
                    daemon.stop()
                await running
            ending = show.ending(interrupted=interrupts.count > 0)
            with suppress(PartDown):  # an interrupt may have ended graphsim as well
                ending.left_out = await sim.left_out()
            return ending


def _remember(data: Path) -> None:
    """Let commands that name no data folder mean this demo."""
    LAST_DEMO_FILE.parent.mkdir(exist_ok=True)
    LAST_DEMO_FILE.write_text(str(data), encoding="utf-8")


def _display(wishes: Wishes) -> Display:
    if wishes.as_json:
        return Silence()
    if not on_terminal():
        return Lines()
    from drivefeed.cli.screen import TerminalScreen

    return TerminalScreen(console())


def settings_of_demo(
    endpoints: dict[str, Any], served: Path, data: Path, *, grace: float
) -> Settings:
    """Write the demo's settings into its data folder, where other commands find them."""
    path = data / SETTINGS_NAME
    path.touch(mode=0o600)
    path.write_text(
        _TOML.format(
            account=_toml(
                name="demo",
                org="demo",
                tenant_id=endpoints["tenant_id"],
                client_id=endpoints["client_id"],
                client_secret=endpoints["client_secret"],
                authority=endpoints["login_url"],
                graph_url=endpoints["graph_url"],
                ca_file=endpoints["ca_file"],
            ),
            connection=_toml(
                account="demo",
                drive_id=endpoints["drive_id"],
                name=served.name or "OneDrive",
                grace_seconds=grace,
            ),
        ),
        encoding="utf-8",
    )
    context.options.config = path
    context.options.data_dir = data
    return context.settings_for_commands()


_TOML = """# Written by 'drivefeed demo' at its start.
poll_seconds = 1.0
poll_slowest_seconds = 1.0
log_json = true
# graphsim grants as many resource units as we ask for.
ru_per_minute = 1000000

[[accounts]]
{account}

[[connections]]
{connection}
"""


def _toml(**values: str | float) -> str:
    """Write keys with strings and numbers; their JSON forms are TOML as well."""
    return "\n".join(f"{key} = {json.dumps(value)}" for key, value in values.items())

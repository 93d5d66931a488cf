"""``demo``: a folder of this machine, served as OneDrive, becomes searchable."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drivefeed.bootstrap import Surroundings, open_parts
from drivefeed.catalog.progress import Progress, progress_of
from drivefeed.cli import context
from drivefeed.cli.context import EXIT_NOT_CLEAN, LAST_DEMO_FILE, errors, print_json, run
from drivefeed.cli.live import Screen
from drivefeed.cli.look import progress_dict
from drivefeed.cli.serve import stop_on_signals
from drivefeed.daemon import Daemon
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.settings import AccountSettings, ConnectionSettings, Settings
from drivefeed.telemetry import configure_logs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

_HOME = Path("drivefeed-demo")
_READY_SECONDS = 30.0
_LOOK_SECONDS = 0.25
_CALM_LOOKS = 3
SLOW_SECONDS = 1.5
_NO_LIMIT = 1_000_000
"""Resource units a minute: graphsim grants as many as we ask for."""


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
    grace: Annotated[
        float, typer.Option(min=0, help="Seconds until removed content is erased.")
    ] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Serve a folder as OneDrive and make it searchable, before your eyes."""
    if importlib.util.find_spec("graphsim") is None:
        raise NeedsAttention(
            "The demo needs graphsim: install drivefeed[local,sim].", reason=Reason.MISCONFIGURED
        )
    served = _served(folder)
    data = context.options.data_dir or _data_for(served)
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    LAST_DEMO_FILE.parent.mkdir(exist_ok=True)
    LAST_DEMO_FILE.write_text(str(data.absolute()))
    with (data / "drivefeed.log").open("a", encoding="utf-8") as log:
        configure_logs(json=True, stream=log)
        final = run(_demo(served, data, once=once, slow=slow, grace=grace, quiet=as_json))
    if as_json:
        print_json([progress_dict(one) for one in final])
    if once and not all(one.at_rest for one in final):
        raise typer.Exit(EXIT_NOT_CLEAN)


def _served(folder: Path | None) -> Path:
    if folder is None:
        from drivefeed.sample import write_sample

        served = _HOME / "OneDrive"
        write_sample(served)
        return served.absolute()
    if not folder.is_dir():
        raise NeedsAttention(f"There is no folder '{folder}'.", reason=Reason.MISCONFIGURED)
    return folder.absolute()


def _data_for(served: Path) -> Path:
    name = hashlib.sha256(os.fsencode(served)).hexdigest()[:8]
    return (_HOME / f"data-{served.name[:40]}-{name}").absolute()


async def _demo(
    served: Path, data: Path, *, once: bool, slow: bool, grace: float, quiet: bool
) -> list[Progress]:
    async with graphsim(served, data) as sim:
        settings = _settings(sim, served, data, grace=grace)
        around = Surroundings.real()
        async with open_parts(settings, around) as parts:
            daemon = Daemon(parts, pace_seconds=SLOW_SECONDS if slow else 0.0)
            running = asyncio.create_task(daemon.run(), name="daemon")
            ready = asyncio.create_task(daemon.ready.wait())
            await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                ready.cancel()
                running.result()
            stop_on_signals(daemon)
            screen = Screen(served, data, quiet=quiet)
            try:
                found = await _watch(daemon, running, screen, once=once)
            finally:
                if not running.done():
                    daemon.stop()
                await running
            screen.close(found)
            return found


async def _watch(
    daemon: Daemon, running: asyncio.Task[None], screen: Screen, *, once: bool
) -> list[Progress]:
    calm = 0
    found: list[Progress] = []
    while not running.done():
        found = await progress_of(daemon.parts.catalog)
        screen.show(found, daemon)
        calm = calm + 1 if found and all(one.at_rest for one in found) else 0
        if once and calm >= _CALM_LOOKS:
            break
        await asyncio.wait({running}, timeout=_LOOK_SECONDS)
    return found


def _settings(sim: dict[str, Any], served: Path, data: Path, *, grace: float) -> Settings:
    return Settings(
        data_dir=data,
        poll_seconds=1.0,
        ru_per_minute=_NO_LIMIT,
        log_json=True,
        accounts=[
            AccountSettings(
                name="demo",
                org="demo",
                tenant_id=sim["tenant_id"],
                client_id=sim["client_id"],
                client_secret=sim["client_secret"],
                authority=sim["login_url"],
                graph_url=sim["graph_url"],
                ca_file=sim["ca_file"],
            )
        ],
        connections=[
            ConnectionSettings(
                account="demo",
                drive_id=sim["drive_id"],
                name=served.name,
                grace_seconds=grace,
            )
        ],
    )


@asynccontextmanager
async def graphsim(served: Path, data: Path) -> AsyncIterator[dict[str, Any]]:
    """Run graphsim over a folder in a process of its own; yields its endpoints.

    Raises:
        NeedsAttention: it did not start.
    """
    ready_file = data / "graphsim.json"
    await asyncio.to_thread(ready_file.unlink, missing_ok=True)
    with (data / "graphsim.log").open("ab") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "graphsim",
            str(served),
            "--state",
            str(data / "graphsim"),
            "--ready-file",
            str(ready_file),
            stdout=log,
            stderr=log,
        )
    try:
        yield await _ready(process, ready_file, data)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _ready(
    process: asyncio.subprocess.Process, ready_file: Path, data: Path
) -> dict[str, Any]:
    try:
        async with asyncio.timeout(_READY_SECONDS):
            while process.returncode is None:
                if ready_file.is_file():
                    found: dict[str, Any] = json.loads(ready_file.read_text())
                    return found
                await asyncio.sleep(0.05)
    except TimeoutError:
        errors.print("graphsim does not get ready.")
    raise NeedsAttention(
        f"graphsim did not start; its words are in {data / 'graphsim.log'}.",
        reason=Reason.MISCONFIGURED,
    )

"""``demo``: a folder of this machine, served as OneDrive, becomes searchable."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import json
import os
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from drivefeed.bootstrap import Surroundings, open_parts
from drivefeed.catalog.progress import Progress, being_withdrawn, progress_of
from drivefeed.cli import context
from drivefeed.cli.context import (
    EXIT_NOT_CLEAN,
    LAST_DEMO_FILE,
    SETTINGS_NAME,
    errors,
    print_json,
    run,
)
from drivefeed.cli.live import Screen
from drivefeed.cli.look import progress_dict
from drivefeed.cli.serve import stop_on_signals
from drivefeed.daemon import Daemon
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.queue.embedded import refuse_beside_another
from drivefeed.services.certificate import certify
from drivefeed.telemetry import configure_logs

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.services.certificate import Certificate
    from drivefeed.settings import Settings

_HOME = Path("drivefeed-demo")
_READY_SECONDS = 30.0
_LOOK_SECONDS = 0.25
_CALM_LOOKS = 3
SLOW_SECONDS = 1.5


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
    refuse_beside_another(data / "queue")
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    LAST_DEMO_FILE.parent.mkdir(exist_ok=True)
    LAST_DEMO_FILE.write_text(str(data.absolute()))
    with (data / "drivefeed.log").open("a", encoding="utf-8") as log:
        configure_logs(json=True, stream=log)
        final = run(_demo(served, data, once=once, slow=slow, grace=grace, quiet=as_json))
    if as_json:
        print_json(final.as_dict())
    if once and not final.is_clean:
        raise typer.Exit(EXIT_NOT_CLEAN)


@dataclass(frozen=True, slots=True)
class Result:
    """How a demo ended: the standing of its files, and the certificate if it ran to its end."""

    found: list[Progress]
    certificate: Certificate | None

    @property
    def is_clean(self) -> bool:
        """Whether every file came to an end and all parts agree."""
        agrees = self.certificate is not None and self.certificate.holds
        return agrees and all(one.at_rest and not one.waits_for_person for one in self.found)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "connections": [progress_dict(one) for one in self.found],
            "certificate": self.certificate.as_dict() if self.certificate else None,
        }


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
) -> Result:
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
            certificate: Certificate | None = None
            try:
                found = await _watch(daemon, running, screen, once=once, started=around.clock.now())
                if once and not running.done():
                    certificate = await certify(
                        parts.catalog, parts.source, parts.store, parts.index.rounds()
                    )
            finally:
                if not running.done():
                    daemon.stop()
                await running
            screen.close(found, certificate)
            return Result(found, certificate)


async def _watch(
    daemon: Daemon, running: asyncio.Task[None], screen: Screen, *, once: bool, started: int
) -> list[Progress]:
    """Show progress until stopped; with ``once``, until all is at rest and was listed since."""
    calm = 0
    found: list[Progress] = []
    while not running.done():
        found = await progress_of(daemon.parts.catalog)
        screen.show(found, daemon)
        ended = bool(found) and all(_has_ended(one, started) for one in found)
        calm = calm + 1 if ended and not await being_withdrawn(daemon.parts.catalog) else 0
        if once and calm >= _CALM_LOOKS:
            break
        await asyncio.wait({running}, timeout=_LOOK_SECONDS)
    return found


def _has_ended(one: Progress, started: int) -> bool:
    """Whether a connection's files came to an end, those that changed before we began included."""
    return one.waits_for_person or (one.at_rest and (one.listed_at or 0) >= started)


def _settings(sim: dict[str, Any], served: Path, data: Path, *, grace: float) -> Settings:
    """Write the demo's settings into its data folder, where other commands find them."""
    path = data / SETTINGS_NAME
    path.touch(mode=0o600)
    path.write_text(
        _TOML.format(
            account=_toml(
                name="demo",
                org="demo",
                tenant_id=sim["tenant_id"],
                client_id=sim["client_id"],
                client_secret=sim["client_secret"],
                authority=sim["login_url"],
                graph_url=sim["graph_url"],
                ca_file=sim["ca_file"],
            ),
            connection=_toml(
                account="demo",
                drive_id=sim["drive_id"],
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
                if await asyncio.to_thread(ready_file.is_file):
                    words = await asyncio.to_thread(ready_file.read_text)
                    found: dict[str, Any] = json.loads(words)
                    return found
                await asyncio.sleep(0.05)
    except TimeoutError:
        errors.print("graphsim does not get ready.")
    raise NeedsAttention(
        f"graphsim did not start; its words are in {data / 'graphsim.log'}.",
        reason=Reason.MISCONFIGURED,
    )

"""``doctor``: look at every part and say what is wrong and what to do."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from drivefeed.bootstrap import Surroundings, open_parts
from drivefeed.catalog.sources import all_connections, all_drives
from drivefeed.cli.context import (
    EXIT_NOT_CLEAN,
    console,
    daemon_client,
    print_json,
    run,
    settings_for_commands,
)
from drivefeed.cli.look import meaning_of, remedy_of
from drivefeed.domain.errors import DrivefeedError
from drivefeed.queue.bullmq import BullmqQueue
from drivefeed.queue.embedded import embedded_url

if TYPE_CHECKING:
    import httpx

    from drivefeed.bootstrap import Parts
    from drivefeed.settings import Settings

GREEN, YELLOW, RED = "green", "yellow", "red"
_LEAST_FREE_BYTES = 2 * 1024**3


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one part."""

    part: str
    colour: str
    words: str
    remedy: str = ""


def doctor(
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Check every part; exit code 1 if something is red."""
    findings = run(_examine(settings_for_commands()))
    if as_json:
        print_json([asdict(one) for one in findings])
    else:
        for one in findings:
            console.print(f"[{one.colour}]●[/] [bold]{one.part:<12}[/] {escape(one.words)}")
            if one.remedy:
                console.print(f"  {'':<12} [dim]{escape(one.remedy)}[/]")
    if any(one.colour == RED for one in findings):
        raise typer.Exit(EXIT_NOT_CLEAN)


async def _examine(settings: Settings) -> list[Finding]:
    async with (
        open_parts(settings, Surroundings.real()) as parts,
        daemon_client(settings) as client,
    ):
        return [
            *_disk(settings),
            Finding("catalog", GREEN, f"{settings.catalog_url}: migrated and open."),
            await _daemon(client),
            *await _queue(parts, settings),
            await _store(parts),
            await _index(parts, client),
            *await _drives(parts),
        ]


def _disk(settings: Settings) -> list[Finding]:
    usage = shutil.disk_usage(settings.data_dir)
    words = f"{usage.free / 1024**3:.1f} GiB free in {settings.data_dir.absolute()}."
    if usage.free < _LEAST_FREE_BYTES:
        return [Finding("disk", YELLOW, words, "Free some space before the disk is full.")]
    return [Finding("disk", GREEN, words)]


async def _daemon(client: httpx.AsyncClient | None) -> Finding:
    if client is None:
        return Finding(
            "daemon", YELLOW, "No daemon runs here.", "Start it with 'drivefeed up' or a demo."
        )
    health = (await client.get("/healthz")).json()
    if health["down"]:
        words = "; ".join(f"{part}: {said}" for part, said in health["down"].items())
        return Finding("daemon", RED, f"Parts are down: {words}", "It goes on when they answer.")
    return Finding(
        "daemon",
        GREEN,
        f"Process {health['pid']} answers; longest stall {health['longest_stall_ms']} ms.",
    )


async def _queue(parts: Parts, settings: Settings) -> list[Finding]:
    if settings.redis_url is not None:
        url: str | None = settings.redis_url.get_secret_value()
    else:
        url = embedded_url(settings.data_dir / "queue")
    if url is None:
        return [Finding("queue", YELLOW, "The embedded queue server is not running.")]
    queue = BullmqQueue(url, prefix=settings.queue_prefix, name="doctor", ids=parts.around.ids)
    try:
        await queue.check()
        warnings = [Finding("queue", YELLOW, words) for words in await queue.warnings()]
    except DrivefeedError as error:
        return [Finding("queue", RED, str(error))]
    finally:
        await queue.aclose()
    return warnings or [Finding("queue", GREEN, "Answers, evicts nothing, writes to disk.")]


async def _store(parts: Parts) -> Finding:
    try:
        await parts.store.check()
    except DrivefeedError as error:
        return Finding("store", RED, str(error))
    return Finding("store", GREEN, "Writes, refuses to overwrite, reads and deletes.")


async def _index(parts: Parts, client: httpx.AsyncClient | None) -> Finding:
    if client is not None and not parts.settings.qdrant_url:
        return Finding("index", GREEN, "Embedded, in the daemon.")
    try:
        await parts.index.check()
    except DrivefeedError as error:
        return Finding("index", RED, str(error))
    return Finding("index", GREEN, "Answers and fits the embedding model.")


async def _drives(parts: Parts) -> list[Finding]:
    findings = []
    for drive in await all_drives(parts.catalog):
        code = drive.attention or drive.hold
        if code is None:
            findings.append(Finding("drive", GREEN, f"'{drive.name}' is followed."))
        else:
            colour = RED if drive.attention else YELLOW
            words = f"'{drive.name}': {meaning_of(code)} {drive.detail or ''}"
            findings.append(Finding("drive", colour, words, remedy_of(code)))
    for one in await all_connections(parts.catalog):
        if one.attention is not None:
            words = f"'{one.name}': {meaning_of(one.attention)}"
            findings.append(Finding("connection", RED, words, remedy_of(one.attention)))
    return findings

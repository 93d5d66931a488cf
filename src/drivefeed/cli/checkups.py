"""What the doctor looks at, part by part."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from drivefeed.bootstrap import add_account
from drivefeed.catalog.sources import all_connections, all_drives
from drivefeed.cli.words import meaning_of, remedy_of, size_of
from drivefeed.domain.errors import DrivefeedError
from drivefeed.domain.remote import DriveRef

if TYPE_CHECKING:
    import httpx

    from drivefeed.bootstrap import Parts
    from drivefeed.settings import AccountSettings, Settings

GREEN, YELLOW, RED = "green", "yellow", "red"
_LEAST_FREE_BYTES = 2 * 1024**3
_NO_SPACE_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of one part; what is not green has a remedy."""

    part: str
    colour: str
    words: str
    remedy: str = ""


def disk(settings: Settings) -> list[Finding]:
    """Look at the data folder: whether it is ours to write, and how much room there is."""
    folder = settings.data_dir.absolute()
    there = next(one for one in (folder, *folder.parents) if one.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        words = f"'{there}' cannot be written."
        return [Finding("disk", RED, words, "Choose another data folder with --data.")]
    free = shutil.disk_usage(there).free
    words = f"{size_of(free)} free in {folder}."
    if free < _NO_SPACE_BYTES:
        return [Finding("disk", RED, words, "Free some space; the work goes on by itself.")]
    if free < _LEAST_FREE_BYTES:
        return [Finding("disk", YELLOW, words, "Free some space before the disk is full.")]
    return [Finding("disk", GREEN, words)]


async def daemon(client: httpx.AsyncClient | None) -> Finding:
    """Ask the daemon how it is."""
    if client is None:
        remedy = "Start it with 'drivefeed up', or a demo with 'drivefeed demo'."
        return Finding("daemon", YELLOW, "No daemon runs on this data folder.", remedy)
    health = (await client.get("/healthz")).json()
    if health["down"]:
        words = "; ".join(f"{part}: {said}" for part, said in health["down"].items())
        remedy = "Repair the part; the work goes on by itself when it answers."
        return Finding("daemon", RED, f"Parts are down: {words}", remedy)
    words = f"Process {health['pid']} answers; longest stall {health['longest_stall_ms']} ms."
    return Finding("daemon", GREEN, words)


async def queue(parts: Parts) -> list[Finding]:
    """Ask Redis whether it answers and is set up as a queue has to be."""
    from drivefeed.queue.bullmq import BullmqQueue
    from drivefeed.queue.embedded import embedded_url

    settings = parts.settings
    if settings.redis_url is not None:
        url: str | None = settings.redis_url.get_secret_value()
    else:
        url = embedded_url(settings.data_dir / "queue")
    if url is None:
        words = "The embedded queue server is not running."
        return [Finding("queue", YELLOW, words, "Nothing: it starts and ends with the daemon.")]
    redis = BullmqQueue(url, prefix=settings.queue_prefix, name="doctor", ids=parts.around.ids)
    try:
        await redis.check()
        warnings = [
            Finding("queue", YELLOW, words, "Change it in the configuration of Redis.")
            for words in await redis.warnings()
        ]
    except DrivefeedError as error:
        return [Finding("queue", RED, str(error), "Repair it; nothing is lost meanwhile.")]
    finally:
        await redis.aclose()
    return warnings or [Finding("queue", GREEN, "Answers, evicts nothing, writes to disk.")]


async def store(parts: Parts) -> Finding:
    """Write, conditionally write, read and delete a small object."""
    try:
        await parts.store.check()
    except DrivefeedError as error:
        remedy = "Repair the store or its settings; what waits goes on by itself."
        return Finding("store", RED, str(error), remedy)
    words = "Writes, refuses to write twice under one key, reads and deletes."
    return Finding("store", GREEN, words)


async def index(parts: Parts, client: httpx.AsyncClient | None) -> Finding:
    """Ask the index whether it answers and was made for the embedding model."""
    if client is not None and not parts.settings.qdrant_url:
        return Finding("index", GREEN, "Embedded, opened by the daemon, fits the embedding model.")
    try:
        await parts.index.check()
        count = await parts.index.count()
    except DrivefeedError as error:
        remedy = "Repair it, or the settings that name it; what waits goes on by itself."
        return Finding("index", RED, str(error), remedy)
    return Finding("index", GREEN, f"Answers, fits the embedding model, holds {count} points.")


async def accounts(parts: Parts, *, is_running: bool) -> list[Finding]:
    """Sign in with each account, and open each drive that a connection names."""
    findings = []
    for account in parts.settings.accounts:
        wanted = {one.drive_id for one in parts.settings.connections if one.account == account.name}
        if not wanted:
            words = f"'{account.name}': no connection uses it."
            findings.append(Finding("account", YELLOW, words, "Connect a folder, or remove it."))
        findings += [
            await _account(parts, account, drive_id, is_running=is_running)
            for drive_id in sorted(wanted)
        ]
    return findings


async def _account(
    parts: Parts, account: AccountSettings, drive_id: str, *, is_running: bool
) -> Finding:
    known = await add_account(parts, account)
    try:
        drive = await parts.source.drive(DriveRef(known, drive_id))
    except DrivefeedError as error:
        host = urlsplit(account.graph_url or "").hostname
        if host == "127.0.0.1" and not is_running:
            words = f"'{account.name}' belongs to a demo, and its graphsim is not running."
            return Finding("account", YELLOW, words, "Start it with 'drivefeed demo'.")
        remedy = "Check tenant, client id, secret and permissions in the settings."
        return Finding("account", RED, f"'{account.name}': {error}", remedy)
    return Finding("account", GREEN, f"'{account.name}' signs in and may read '{drive.name}'.")


async def drives(parts: Parts) -> list[Finding]:
    """Look at what the catalog knows of each drive and connection."""
    findings = []
    for drive in await all_drives(parts.catalog):
        code = drive.attention or drive.hold
        if code is None:
            findings.append(Finding("drive", GREEN, f"'{drive.name}' is followed."))
        else:
            colour = RED if drive.attention else YELLOW
            words = f"'{drive.name}': {meaning_of(code)} {drive.detail or ''}".rstrip()
            findings.append(Finding("drive", colour, words, remedy_of(code)))
    for one in await all_connections(parts.catalog):
        if one.attention is not None:
            words = f"'{one.name}': {meaning_of(one.attention)}"
            findings.append(Finding("connection", RED, words, remedy_of(one.attention)))
        elif one.paused:
            words = f"'{one.name}' is paused."
            findings.append(Finding("connection", YELLOW, words, "'drivefeed resume' resumes it."))
    return findings


def board(settings: Settings) -> list[Finding]:
    """Compare the board's list of queues with the table in code; nothing without a checkout."""
    from drivefeed.queue.table import queues_json

    path = Path(__file__).parents[3] / "bull-board" / "queues.json"
    if not path.is_file():
        return []
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))["queues"]
    except (ValueError, KeyError):
        listed = None
    if listed != queues_json(settings.queue_prefix)["queues"]:
        words = "bull-board/queues.json does not list the queues of this version."
        return [Finding("board", YELLOW, words, "Write it anew with 'make format'.")]
    return [Finding("board", GREEN, "Lists the queues of this version.")]

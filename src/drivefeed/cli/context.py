"""What commands share: where the data is, and how to ask the catalog and the daemon."""

from __future__ import annotations

import asyncio
import getpass
import json
import os
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from drivefeed.cli import EXIT_INTERRUPTED
from drivefeed.domain.errors import NeedsAttention, NotFound, Part, PartDown
from drivefeed.domain.reasons import Reason
from drivefeed.domain.visible import visible
from drivefeed.system import take_short_turns
from drivefeed.web.door import DOOR_FILE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    import httpx

    from drivefeed.bootstrap import Parts
    from drivefeed.catalog.engine import Catalog
    from drivefeed.settings import Settings

DATA_VARIABLE = "DRIVEFEED_DATA_DIR"
SETTINGS_NAME = "drivefeed.toml"
LAST_DEMO_FILE = Path("drivefeed-demo") / "last"

EXIT_NOT_CLEAN = 1
"""The answer is no: drift, nothing found, failures."""
EXIT_TROUBLE = 3
"""Something stands in the way; the sentence on standard error says what."""

_LOOKING = frozenset(
    {
        *("status", "imports", "why", "search", "verify", "doctor", "support-bundle", "queues"),
        *("board-env", "browse", "plan", "probe", "registration", "notices", "version", "demo"),
        *("account list", "account show", "account test", "account certificate"),
        *("org list", "key list", "connection list", "connection show", "connections plan"),
        "connection receipt",
        "secrets status",
    }
)
"""Commands that change nothing, so that it matters less where they look."""

T = TypeVar("T")


@dataclass(slots=True)
class Options:
    """What stands before the command's name, and the command.

    Attributes:
        words: its name and what was typed behind it.
        told_folder: whether it was said already whose data folder it is.
    """

    data_dir: Path | None = None
    config: Path | None = None
    words: tuple[str, ...] = ()
    told_folder: bool = False


options = Options()


def settings_for_commands() -> Settings:
    """Return the settings; without any, those of the last demo that ran in this folder.

    A file ``drivefeed.toml`` in the data folder counts where no other is named.
    """
    from drivefeed.settings import CONFIG_VARIABLE, load_settings

    overrides = _named_folder()
    _tell_folder(overrides)
    named = settings_file()
    before = os.environ.get(CONFIG_VARIABLE)
    if named:
        os.environ[CONFIG_VARIABLE] = str(named)
    try:
        return load_settings(**overrides)
    finally:
        if named and before is None:
            del os.environ[CONFIG_VARIABLE]


def settings_file() -> Path | None:
    """Return the file that settings are read from, or None where there is none."""
    from drivefeed.settings import CONFIG_VARIABLE, Settings

    named: Path | str | None = options.config or os.environ.get(CONFIG_VARIABLE)
    if not named:
        folder = _named_folder().get("data_dir", Settings.model_fields["data_dir"].default)
        beside = Path(folder) / SETTINGS_NAME
        named = beside if beside.is_file() else None
    return Path(named) if named else None


def _named_folder() -> dict[str, Any]:
    """Return the data folder that was named, or that of the last demo; else the settings' own."""
    from drivefeed.settings import CONFIG_VARIABLE

    if options.data_dir is not None:
        return {"data_dir": options.data_dir}
    named = options.config or os.environ.get(CONFIG_VARIABLE)
    if not named and LAST_DEMO_FILE.is_file():
        return {"data_dir": Path(LAST_DEMO_FILE.read_text(encoding="utf-8").strip())}
    return {}


def _tell_folder(chosen: dict[str, Any]) -> None:
    """Say once which folder a command changes that nobody named: the last demo's.

    It goes to standard error, so that programs read what they read before.
    """
    if options.data_dir is not None or not chosen or options.told_folder:
        return
    words = options.words
    decides = {"--approve", "--discard"} & {*words}
    looks = _LOOKING & {*words[:1], " ".join(words[:2])} or (words[:1] == ("removals",))
    if looks and not decides:
        return
    options.told_folder = True
    sys.stderr.write(
        f"drivefeed: This is the data folder of the last demo, '{visible(str(chosen['data_dir']))}'"
        f"; --data or {DATA_VARIABLE} names another one.\n"
    )


def existing_settings() -> Settings:
    """Return the settings of an installation that has data.

    Raises:
        NeedsAttention: there is none.
    """
    settings = settings_for_commands()
    if not settings.database_url and not (settings.data_dir / "catalog.sqlite").is_file():
        raise NeedsAttention(
            f"There is no drivefeed in '{settings.data_dir}'. Start one with 'drivefeed init', "
            "'drivefeed demo' or 'drivefeed up', or name its data folder with --data.",
            reason=Reason.MISCONFIGURED,
        )
    return settings


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work to its end; Ctrl-C ends it without a traceback."""
    take_short_turns()
    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None


@asynccontextmanager
async def existing_catalog() -> AsyncIterator[Catalog]:
    """Open the catalog of an installation that has data, and nothing else."""
    from drivefeed.bootstrap import open_memory

    async with open_memory(existing_settings()) as catalog:
        yield catalog


@asynccontextmanager
async def existing_parts() -> AsyncIterator[Parts]:
    """Open all parts of an installation that has data.

    Raises:
        PartDown: they belong to another data folder, whose daemon works on the same database.
    """
    from drivefeed.bootstrap import open_parts
    from drivefeed.telemetry import keep_logs_apart

    keep_logs_apart()
    async with open_parts(existing_settings()) as parts:
        await refuse_parts_of_others(parts)
        yield parts


async def refuse_parts_of_others(parts: Parts) -> None:
    """Do nothing unless a daemon works on the database with parts in another data folder.

    Raises:
        PartDown: one does.
    """
    from drivefeed.bootstrap import folder_identity
    from drivefeed.services.sole_process import refuse_in_another_folder

    await refuse_in_another_folder(parts.catalog, folder=folder_identity(parts.settings))


@asynccontextmanager
async def account_parts() -> AsyncIterator[Parts]:
    """Open all parts of an installation that has data, or whose settings have an account."""
    from drivefeed.bootstrap import open_parts
    from drivefeed.telemetry import keep_logs_apart

    keep_logs_apart()
    settings = settings_for_commands()
    async with open_parts(settings if settings.accounts else existing_settings()) as parts:
        yield parts


def os_user() -> str:
    """Return the user of the machine who runs the command, for the audit log."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # In a container the process may run as a number without a name.
        return f"uid {os.getuid()}"


def door_of(settings: Settings) -> Path | None:
    """Return the socket of the daemon that runs on the data folder, or None."""
    try:
        found = json.loads((settings.data_dir / DOOR_FILE).read_text(encoding="utf-8"))
        path = Path(found["socket"])
    except (OSError, ValueError, KeyError):
        return None
    return path if path.exists() else None


@asynccontextmanager
async def daemon_client(settings: Settings) -> AsyncIterator[httpx.AsyncClient | None]:
    """Open a client of the running daemon, or None where none answers."""
    path = door_of(settings)
    if path is None:
        yield None
        return
    import httpx

    # Reading the certificates of the usual authorities would take 20 ms, and none is needed here.
    transport = httpx.AsyncHTTPTransport(uds=str(path), verify=False)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://daemon", timeout=60.0
    ) as client:
        try:
            await client.get("/healthz")
        except httpx.HTTPError:
            yield None
            return
        yield client


def answer_of(response: httpx.Response) -> Any:
    """Return the JSON of the daemon's answer.

    Raises:
        NotFound, PartDown: what the daemon said, as a sentence.
    """
    if response.is_success:
        return response.json()
    try:
        words = str(response.json()["error"])
    except (ValueError, KeyError):
        words = f"The daemon answered {response.status_code}."
    if response.status_code == 404:  # noqa: PLR2004 - the number is its own name
        raise NotFound(words)
    raise PartDown(words, part=Part.INDEX)

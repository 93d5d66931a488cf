"""What commands share: where the data is, how to ask the daemon, how to print."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import httpx
from rich.console import Console

from drivefeed.bootstrap import Parts, Surroundings, open_parts
from drivefeed.domain.errors import NeedsAttention, NotFound, Part, PartDown
from drivefeed.domain.reasons import Reason
from drivefeed.settings import CONFIG_VARIABLE, Settings, load_settings
from drivefeed.web.local import DOOR_FILE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

DATA_VARIABLE = "DRIVEFEED_DATA_DIR"
SETTINGS_NAME = "drivefeed.toml"
LAST_DEMO_FILE = Path("drivefeed-demo") / "last"

EXIT_TROUBLE = 3
"""Something stands in the way; the sentence on standard error says what."""
EXIT_NOT_CLEAN = 1
"""The answer is no: drift, nothing found, failures."""

T = TypeVar("T")

console = Console()
errors = Console(stderr=True)


@dataclass(slots=True)
class Options:
    """What stands before the command's name."""

    data_dir: Path | None = None
    config: Path | None = None


options = Options()


def settings_for_commands() -> Settings:
    """Return the settings; without any, those of the last demo that ran in this folder.

    A file ``drivefeed.toml`` in the data folder counts where no other is named.
    """
    overrides: dict[str, Any] = {}
    if options.data_dir is not None:
        overrides["data_dir"] = options.data_dir
    elif options.config is None and LAST_DEMO_FILE.is_file():
        overrides["data_dir"] = Path(LAST_DEMO_FILE.read_text(encoding="utf-8").strip())
    config = options.config
    if config is None and "data_dir" in overrides:
        beside = Path(overrides["data_dir"]) / SETTINGS_NAME
        config = beside if beside.is_file() else None
    if config is not None:
        os.environ[CONFIG_VARIABLE] = str(config)
    return load_settings(**overrides)


def existing_settings() -> Settings:
    """Return the settings of an installation that has data.

    Raises:
        NeedsAttention: there is none.
    """
    settings = settings_for_commands()
    if not settings.database_url and not (settings.data_dir / "catalog.sqlite").is_file():
        raise NeedsAttention(
            f"There is no drivefeed in '{settings.data_dir}'. Start one with 'drivefeed demo' or "
            "'drivefeed up', or name its data folder with --data.",
            reason=Reason.MISCONFIGURED,
        )
    return settings


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a command's work to its end."""
    return asyncio.run(work)


@asynccontextmanager
async def existing_parts() -> AsyncIterator[Parts]:
    """Open the parts of an installation that has data."""
    async with open_parts(existing_settings(), Surroundings.real()) as parts:
        yield parts


def print_json(value: Any) -> None:
    """Print for programs."""
    console.print_json(json.dumps(value, default=str), indent=2)


def door_of(settings: Settings) -> Path | None:
    """Return the socket of the daemon that runs on the data folder, or None."""
    try:
        found = json.loads((settings.data_dir / DOOR_FILE).read_text())
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
    transport = httpx.AsyncHTTPTransport(uds=str(path))
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
    if response.status_code == httpx.codes.NOT_FOUND:
        raise NotFound(words)
    raise PartDown(words, part=Part.INDEX)

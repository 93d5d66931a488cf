"""What can't be read on graphsim's disk is refused by the drive itself, as a policy would do it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from support.permissions import give_up_overriding_permissions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SOURCES = Path(__file__).parents[3] / "src"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "served"
    made.mkdir()
    for name in ("open.txt", "closed.txt", "gone.txt"):
        (made / name).write_text(name)
    (made / "closed.txt").chmod(0)
    return made


@pytest.fixture
async def client(tmp_path: Path, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    ready = tmp_path / "ready.json"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "graphsim", folder, "--state", tmp_path / "state"),
        *("--ready-file", ready),
        env={**os.environ, "PYTHONPATH": str(SOURCES)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        preexec_fn=give_up_overriding_permissions,
    )
    async with asyncio.timeout(30):
        while not ready.exists():  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.02)
    ends = json.loads(ready.read_text())
    base = f"{ends['graph_url']}/drives/{ends['drive_id']}/"
    asked = {
        "grant_type": "client_credentials",
        "client_id": ends["client_id"],
        "client_secret": ends["client_secret"],
    }
    async with httpx.AsyncClient(base_url=base, timeout=10) as made:
        url = f"{ends['login_http_url']}/{ends['tenant_id']}/oauth2/v2.0/token"
        token = (await made.post(url, data=asked)).json()["access_token"]
        made.headers["Authorization"] = f"Bearer {token}"
        yield made
    process.terminate()
    await process.communicate()


async def test_a_download_is_refused_before_it_is_redirected(
    client: httpx.AsyncClient, folder: Path
) -> None:
    found = (await client.get("root/children")).json()["value"]
    ids = {one["name"]: one["id"] for one in found}
    hashes = {one["name"]: one["file"].get("hashes") for one in found}
    assert not hashes["closed.txt"]
    assert hashes["open.txt"]
    (folder / "gone.txt").unlink()
    answers = {
        name: await client.get(f"items/{identifier}/content") for name, identifier in ids.items()
    }
    assert {name: one.status_code for name, one in answers.items()} == {
        "open.txt": 302,
        "closed.txt": 403,
        "gone.txt": 404,
    }
    assert answers["closed.txt"].json()["error"]["code"] == "accessDenied"
    (folder / "closed.txt").chmod(0o600)
    async with asyncio.timeout(10):
        while not await has_hash(client, "closed.txt"):  # noqa: ASYNC110 - a server has no event
            await asyncio.sleep(0.05)
    answer = await client.get(f"items/{ids['closed.txt']}/content")
    assert answer.status_code == 302


async def has_hash(client: httpx.AsyncClient, name: str) -> bool:
    found = (await client.get("root/children")).json()["value"]
    return any(one["name"] == name and one["file"].get("hashes") for one in found)

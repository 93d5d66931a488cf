from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SOURCES = Path(__file__).parents[3] / "src"


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(SOURCES))


@pytest.fixture
async def started(
    tmp_path: Path, environment: None
) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict[str, Any], Path]]:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "a.txt").write_text("hello")
    (tmp_path / "other").mkdir()
    ready = tmp_path / "ready.json"
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "graphsim", folder, tmp_path / "other", "--state", tmp_path / "state"),
        *("--ready-file", ready),
        stdout=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        while not ready.exists():  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.02)
    yield process, json.loads(ready.read_text()), folder
    if process.returncode is None:
        process.kill()
        await process.wait()


async def test_the_ready_file_leads_to_the_files(
    started: tuple[asyncio.subprocess.Process, dict[str, Any], Path],
) -> None:
    process, endpoints, folder = started
    assert [drive["folder"] for drive in endpoints["drives"]] == [
        str(folder),
        str(folder.with_name("other")),
    ]
    async with httpx.AsyncClient() as client:
        token = await client.post(
            f"{endpoints['login_http_url']}/{endpoints['tenant_id']}/oauth2/v2.0/token",
            data={
                "grant_type": "client_credentials",
                "client_id": endpoints["client_id"],
                "client_secret": endpoints["client_secret"],
            },
        )
        client.headers["Authorization"] = f"Bearer {token.json()['access_token']}"
        url = f"{endpoints['graph_url']}/drives/{endpoints['drive_id']}/root/children"
        (shown,) = (await client.get(url)).json()["value"]
    async with httpx.AsyncClient() as bare:
        assert (await bare.get(shown["@microsoft.graph.downloadUrl"])).text == "hello"
    process.terminate()
    async with asyncio.timeout(10):
        assert await process.wait() == 0


async def test_generated_files_and_faults_from_a_file(tmp_path: Path, environment: None) -> None:
    script, ready = tmp_path / "faults.toml", tmp_path / "ready.json"
    script.write_text('[[fault]]\nkind = "throttle"\nop = "children"\nretry_after = "soon"\n')
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "graphsim", "--bulk", "100/3", "--faults", script, "--state", tmp_path / "state"),
        *("--ready-file", ready),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(30):
            while not ready.exists():  # noqa: ASYNC110 - a file has no event
                await asyncio.sleep(0.02)
        endpoints = json.loads(ready.read_text())
        async with httpx.AsyncClient(base_url=endpoints["admin_url"]) as admin:
            (drive,) = (await admin.get("/drives")).json()
            assert (drive["name"], drive["items"]) == ("bulk", 104)
            (fault,) = (await admin.get("/faults")).json()
            assert (fault["status"], fault["retry_after"]) == (429, "soon")
            made = await admin.post(f"/drives/{drive['id']}/bulk-changes?count=20")
            assert sum(made.json().values()) == 20
            added = await admin.post("/bulk", json={"files": 50, "folders": 2, "name": "more"})
            assert added.status_code == 201
    finally:
        process.terminate()
        await process.wait()
    script.write_text("[[fault]]\nkind = 'explode'\n")
    words = await _failing("--faults", script, "--state", tmp_path / "state")
    assert "no fault called explode" in words


async def _gone(pid: int) -> None:
    async with asyncio.timeout(10):
        while _state(pid) != "Z":  # noqa: ASYNC110 - the end of a stranger has no event
            await asyncio.sleep(0.05)


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_it_ends_with_its_parent(tmp_path: Path, environment: None) -> None:
    ready = tmp_path / "ready.json"
    program = (
        "import subprocess, sys, time;"
        f"subprocess.Popen([sys.executable, '-m', 'graphsim', '--state', {str(tmp_path / 's')!r},"
        f" '--ready-file', {str(ready)!r}]); time.sleep(600)"
    )
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", program)
    async with asyncio.timeout(30):
        while not ready.exists():  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(0.02)
    pid = json.loads(ready.read_text())["pid"]
    os.kill(parent.pid, signal.SIGKILL)
    await parent.wait()
    await _gone(pid)


async def _failing(*arguments: str | Path) -> str:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "graphsim", *arguments, stderr=asyncio.subprocess.PIPE
    )
    _, errors = await process.communicate()
    assert process.returncode == 1
    return errors.decode()


async def test_mistakes_are_answered_with_a_sentence(
    tmp_path: Path,
    started: tuple[asyncio.subprocess.Process, dict[str, Any], Path],
) -> None:
    _, endpoints, folder = started
    port = endpoints["graph_url"].split(":")[2].split("/")[0]
    state = tmp_path / "another"
    assert "is not a folder" in await _failing(tmp_path / "missing", "--state", state)
    assert "in use" in await _failing(folder, "--state", state, "--port", port)
    assert "already serves" in await _failing(folder, "--state", tmp_path / "state")
    assert "lies inside" in await _failing(folder, "--state", folder / "state")


async def test_it_does_not_outlive_who_started_it_even_if_that_died_first(
    tmp_path: Path, environment: None
) -> None:
    gone = await asyncio.create_subprocess_exec(sys.executable, "-c", "")
    await gone.wait()
    (tmp_path / "served").mkdir()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "graphsim", tmp_path / "served", "--state", tmp_path / "state"),
        *("--parent", str(gone.pid)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(30):
        _, words = await process.communicate()
    assert process.returncode == 1
    assert b"has ended already" in words

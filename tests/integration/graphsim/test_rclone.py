"""A client that nobody here wrote: what it copies must be the folder, byte for byte."""

from __future__ import annotations

import asyncio
import json
import shutil
import sysconfig
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from graphsim.bodies import SyntheticBody
from graphsim.items import Profile
from graphsim.serving import serve

if TYPE_CHECKING:
    from graphsim.endpoints import Endpoints

RCLONE = Path(sysconfig.get_path("scripts")) / "rclone"
DELTA = ("--onedrive-delta", "--fast-list")
NAMES = [
    "a#b.txt",
    "100%41.txt",
    "it's; a&b=c+d.txt",
    "😀 smile.txt",
    "\u202eright to left\u202c.txt",
    unicodedata.normalize("NFD", "Ångström é.txt"),
    "x" * 246 + ".txt",
    "nothing.txt",
]


def _fill(folder: Path) -> None:
    deep = folder / "sub folder" / "deeper"
    deep.mkdir(parents=True)
    for name in NAMES:
        (deep / name).write_text("" if name == "nothing.txt" else name)
    (folder / "large.bin").write_bytes(SyntheticBody(5, 9_000_001).read(0, 9_000_001))
    for number in range(25):
        (folder / "sub folder" / f"{number}.txt").write_text(f"file {number}")


def _config(path: Path, endpoints: Endpoints, profile: str) -> Path:
    token = {
        "access_token": "old",
        "token_type": "Bearer",
        "refresh_token": endpoints.refresh_token,
        "expiry": "2020-01-01T00:00:00Z",
    }
    path.write_text(
        f"""[sim]
type = onedrive
tenant_url = {endpoints.login_http_url}/_api
token_url = {endpoints.login_http_url}/common/oauth2/v2.0/token
auth_url = {endpoints.login_http_url}/common/oauth2/v2.0/authorize
client_id = {endpoints.client_id}
client_secret = {endpoints.client_secret}
token = {json.dumps(token)}
drive_id = {endpoints.drive_id}
drive_type = {profile}
"""
    )
    return path


async def _rclone(config: Path, *arguments: str | Path) -> str:
    process = await asyncio.create_subprocess_exec(
        RCLONE,
        "--config",
        config,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    output, errors = await process.communicate()
    assert process.returncode == 0, errors.decode()
    return output.decode()


def _content(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize("mode", [(), DELTA], ids=["children", "delta"])
@pytest.mark.parametrize("profile", list(Profile))
async def test_rclone_copies_a_folder_and_then_its_changes(
    tmp_path: Path, profile: Profile, mode: tuple[str, ...]
) -> None:
    folder, copy = tmp_path / "served", tmp_path / "copy"
    _fill(folder)
    async with serve(folder, profile=profile, state=tmp_path / "state", page_size=7) as sim:
        config = _config(tmp_path / "rclone.conf", sim.endpoints, profile.value)
        await _rclone(config, "sync", "sim:", copy, *mode)
        assert _content(copy) == _content(folder)

        since = sim.log.last
        (folder / "large.bin").write_bytes(b"small now")
        (folder / "sub folder" / "0.txt").unlink()
        (folder / "sub folder" / "deeper" / "a#b.txt").rename(folder / "moved.txt")
        shutil.copytree(folder / "sub folder" / "deeper", folder / "again")
        await sim.drive.refresh(at_once=True)
        await _rclone(config, "sync", "sim:", copy, *mode)
        assert _content(copy) == _content(folder)
        # large.bin, moved.txt (rclone tracks no renames) and the copied files that are not empty
        assert sim.log.count("content", since=since) <= 3 + len(NAMES)
        assert sim.log.leaked_authorization() == []
        assert await _rclone(config, "check", "sim:", folder, *mode) == ""


async def test_rclone_finds_a_single_file_and_the_quota(tmp_path: Path) -> None:
    folder = tmp_path / "served"
    _fill(folder)
    async with serve(folder) as sim:
        config = _config(tmp_path / "rclone.conf", sim.endpoints, "business")
        assert await _rclone(config, "cat", "sim:sub folder/3.txt") == "file 3"
        assert await _rclone(config, "cat", f"sim:sub folder/deeper/{NAMES[1]}") == NAMES[1]
        quota = json.loads(await _rclone(config, "about", "sim:", "--json"))
        assert quota["used"] == sum(len(body) for body in _content(folder).values() if body)
        hashes = await _rclone(config, "hashsum", "quickxor", "sim:")
        local = await _rclone(config, "hashsum", "quickxor", folder)
        assert sorted(hashes.splitlines()) == sorted(local.splitlines())


async def test_rclone_resumes_after_a_cut_connection(tmp_path: Path) -> None:
    folder, copy = tmp_path / "served", tmp_path / "copy"
    _fill(folder)
    async with serve(folder) as sim:
        config = _config(tmp_path / "rclone.conf", sim.endpoints, "business")
        sim.faults.add("truncate", op="download", name="large.bin", after=4_000_000)
        sim.faults.add("throttle", op="children", retry_after="1")
        await _rclone(config, "copy", "sim:", copy, "--multi-thread-streams", "0")
        assert _content(copy) == _content(folder)
        resumed = [one.range for one in sim.log.entries(op="download") if one.range]
        assert any(one and one.startswith("bytes=4000000-") for one in resumed)

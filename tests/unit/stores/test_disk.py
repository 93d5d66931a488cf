"""Disks that are full, gone or closed to us, for real where the platform lets us."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from drivefeed.domain.errors import Part, PartDown
from drivefeed.stores import DirectoryStore
from drivefeed.stores.disk import disk_error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SOURCES = Path(__file__).parents[3] / "src"

ON_A_FULL_DISK = """
import asyncio, pathlib, subprocess, sys
from drivefeed.domain.errors import PartDown
from drivefeed.stores import DirectoryStore

root = pathlib.Path(sys.argv[1])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(root)], check=True)

async def stream(size):
    for _ in range(size >> 10):
        yield b"x" * 1024

async def main():
    store = DirectoryStore(root / "objects")
    await store.put("org/small", stream(1 << 20), content_type="x/y", size=1 << 20)
    for hint in (8 << 20, None):
        try:
            await store.put("org/big", stream(8 << 20), content_type="x/y", size=hint)
        except PartDown as error:
            print(error)
        else:
            raise SystemExit("it fitted")
        assert await store.stat("org/big") is None
        assert list((root / "objects" / ".partial").iterdir()) == []
    await store.put("org/again", stream(1 << 20), content_type="x/y", size=None)
    print([found.key async for found in store.list("")])
    await store.aclose()

asyncio.run(main())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="mounts a small disk, which Linux can do")
def test_a_full_disk_leaves_nothing_half_written(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    assert unshare, "unshare (util-linux) is needed to mount a small disk for this test alone"
    spaces = ["--mount"] if os.geteuid() == 0 else ["--mount", "--map-root-user"]
    ended = subprocess.run(
        [unshare, *spaces, sys.executable, "-c", ON_A_FULL_DISK, str(tmp_path)],
        env={"PYTHONPATH": str(SOURCES), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    told, untold, keys = ended.stdout.splitlines()
    assert f"The disk of {tmp_path}/objects" in told
    assert "is full: 8,388,608 bytes would be needed" in told
    assert "is full" in untold
    assert keys == "['org/again', 'org/small']"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "The disk of /d is full: 1,000 bytes would be needed"),
        (errno.EDQUOT, "The quota on /d is full: 1,000 bytes"),
        (errno.EROFS, "read-only"),
        (errno.EACCES, "Correct its permissions"),
        (errno.ENOENT, "Is its disk mounted?"),
        (errno.EIO, "/d cannot be used"),
    ],
)
def test_what_disks_say(code: int, words: str) -> None:
    error = disk_error(OSError(code, os.strerror(code)), Path("/d"), needed=1000)
    assert words in str(error)
    assert error.part is Part.STORE


async def some() -> AsyncIterator[bytes]:
    yield b"x"


async def test_a_disk_that_is_gone_is_no_empty_store(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path / "objects")
    await store.put("org/k", some(), content_type="x/y", size=1)
    (tmp_path / "objects").rename(tmp_path / "unmounted")
    for call in (
        store.stat("org/k"),
        store.delete("org/k"),
        store.put("org/k", some(), content_type="x/y", size=1),
        store.abort_uploads(before=0),
        anext(aiter(store.read("org/k"))),
        anext(aiter(store.list(""))),
        store.check(),
    ):
        with pytest.raises(PartDown, match="Mount the disk"):
            await call
    (tmp_path / "unmounted").rename(tmp_path / "objects")
    assert await store.stat("org/k")
    await store.aclose()


def test_a_root_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(PartDown, match="file/objects cannot be used"):
        DirectoryStore(tmp_path / "file" / "objects")


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def test_empty_folders_go_with_their_last_object(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    for key in ("org/d1/i/1", "org/d2/i/1"):
        await store.put(key, some(), content_type="x/y", size=1)
    await store.delete("org/d1/i/1")
    assert entries(tmp_path / "org") == ["d2"]
    await store.delete("org/d2/i/1")
    assert entries(tmp_path) == [".partial"]
    await store.aclose()


async def test_partial_files_of_a_killed_process_are_swept_by_age(tmp_path: Path) -> None:
    store = DirectoryStore(tmp_path)
    for name, modified in (("upload-old", 1000), ("upload-new", 3000)):
        partial = tmp_path / ".partial" / name
        partial.write_bytes(b"half")
        os.utime(partial, (modified, modified))
    assert await store.abort_uploads(before=2_000_000) == 1
    assert entries(tmp_path / ".partial") == ["upload-new"]
    assert [found async for found in store.list("")] == []
    await store.aclose()

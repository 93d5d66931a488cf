"""A big file goes through each store in bounded memory, measured in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from support.seaweed import BUCKET, SeaweedServer, new_prefix, seaweed  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from typing import Any

SOURCES = Path(__file__).parents[3] / "src"
LIMIT = 64 << 20

# Peak memory, not an average: ru_maxrss (KiB on Linux) is what the kernel saw.
PROGRAM = """
import asyncio, json, os, pathlib, resource, sys
from drivefeed.stores import DirectoryStore, S3Store

settings, mib = json.loads(sys.argv[1]), int(sys.argv[3])
factor = 1 if sys.platform == "darwin" else 1024

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * factor

async def stream(mib):
    block = bytearray(os.urandom(1 << 20))
    for n in range(mib):
        block[:4] = n.to_bytes(4, "big")
        yield bytes(block)

async def main():
    kind = settings.pop("kind")
    store = S3Store(**settings) if kind == "s3" else DirectoryStore(pathlib.Path(settings["root"]))
    if kind == "s3":
        await store.ensure_bucket()
    await store.check()
    before = peak()
    stored = await store.put("big", stream(mib), content_type="x/y", size=None)
    put = peak() - before
    await store.fetch("big", pathlib.Path(sys.argv[2]))
    print(json.dumps({"size": stored.size, "put": put, "fetch": peak() - before}))
    assert await store.delete("big")
    await store.aclose()

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.parametrize("mib", [256, pytest.param(1024, marks=pytest.mark.soak)])
@pytest.mark.parametrize("kind", ["directory", "s3"])
def test_a_big_file_in_less_than_64_mib(
    kind: str,
    mib: int,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    settings: dict[str, Any] = {"kind": kind, "root": str(tmp_path / "objects")}
    if kind == "s3":
        server: SeaweedServer = request.getfixturevalue("seaweed")
        settings = {"kind": kind, "bucket": BUCKET, "prefix": new_prefix(), **server.settings}
    copy = tmp_path / "copy"
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(settings), str(copy), str(mib)],
        env={"PYTHONPATH": str(SOURCES)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    measured = json.loads(ended.stdout)
    print(f"{kind}: put +{measured['put'] >> 20} MiB, with fetch +{measured['fetch'] >> 20} MiB")  # noqa: T201 - the figure is the point
    assert measured["size"] == copy.stat().st_size == mib << 20
    assert measured["put"] < LIMIT
    assert measured["fetch"] < LIMIT
    copy.unlink()

"""Megabytes a second through both object stores: many small objects, and one big one.

Usage: python bench/stores.py [--small 500] [--big-mib 512]

S3 is a ``weed server -s3`` on the same machine, so it shares its processors with us. The last
line of each store is for machines: ``stores <name> key=value …``.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from drivefeed.stores import DirectoryStore, S3Store
from support.seaweed import BUCKET, new_prefix, running_seaweed

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.ports import ObjectStore

MIB = 1 << 20
SMALL_BYTES = 100_000
AT_ONCE = 16


async def stream(size: int) -> AsyncIterator[bytes]:
    block = os.urandom(MIB)
    for start in range(0, size, MIB):
        yield block[: min(MIB, size - start)]


async def measure(name: str, store: ObjectStore, *, small: int, big: int) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def put(n: int) -> None:
        async with gate:
            await store.put(
                f"org/{n:06}/i/1", stream(SMALL_BYTES), content_type="x/y", size=SMALL_BYTES
            )

    async def drain(key: str) -> None:
        async with gate:
            async for _ in store.read(key):
                pass

    await store.check()
    began = time.perf_counter()
    await asyncio.gather(*(put(n) for n in range(small)))
    put_small = time.perf_counter() - began
    began = time.perf_counter()
    await asyncio.gather(*(drain(f"org/{n:06}/i/1") for n in range(small)))
    read_small = time.perf_counter() - began
    began = time.perf_counter()
    await store.put("org/big/i/1", stream(big), content_type="x/y", size=big)
    put_big = time.perf_counter() - began
    began = time.perf_counter()
    await drain("org/big/i/1")
    read_big = time.perf_counter() - began
    figures = {
        "small_put_per_s": small / put_small,
        "small_put_mb_s": small * SMALL_BYTES / put_small / 1e6,
        "small_read_per_s": small / read_small,
        "big_put_mb_s": big / put_big / 1e6,
        "big_read_mb_s": big / read_big / 1e6,
        "peak_rss_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(f"{name}: {small} objects of {SMALL_BYTES:,} bytes, one of {big // MIB} MiB")
    print(f"stores {name} " + " ".join(f"{key}={value:.1f}" for key, value in figures.items()))
    await store.aclose()


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", type=int, default=500)
    parser.add_argument("--big-mib", type=int, default=512)
    wanted = parser.parse_args()
    amounts = {"small": wanted.small, "big": wanted.big_mib * MIB}
    with tempfile.TemporaryDirectory(prefix="stores-bench-") as folder:
        await measure("directory", DirectoryStore(Path(folder)), **amounts)
    with running_seaweed() as server:
        store = S3Store(BUCKET, prefix=new_prefix(), **server.settings)
        await store.ensure_bucket()
        await measure("s3", store, **amounts)


if __name__ == "__main__":
    asyncio.run(main())

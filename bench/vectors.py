"""Insert and search 10,000 points: the embedded index against qdrant-client's local mode.

Run ``python bench/vectors.py [POINTS]`` from the repository's root with ``src`` on the path. Both
are measured in one run; trust the ratios more than the times. The last line is JSON.
"""

import asyncio
import json
import os
import platform
import random
import statistics
import sys
import tempfile
import time
import uuid
import warnings
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from drivefeed.indexer.vectors.edge import EdgeIndex
from drivefeed.indexer.vectors.server import ServerIndex
from drivefeed.ports import Point, SearchFilter, VectorIndex

DIMENSION = 384
PER_IMPORT = 50
SEARCHES = 50


def made_up(count: int, random_: random.Random) -> list[Point]:
    words = [f"word{number}" for number in range(20_000)]
    return [
        Point(
            point_id=str(uuid.UUID(int=number + 1)),
            vector=[random_.gauss(0, 1) for _ in range(DIMENSION)],
            text=" ".join(random_.choices(words, k=120)),
            org_id=f"org-{number // PER_IMPORT % 3}",
            document_id=f"doc-{number // PER_IMPORT}",
            import_id=f"imp-{number // PER_IMPORT}",
            round=1,
            seq=1,
            chunk=number % PER_IMPORT,
            page=1,
            name="name.pdf",
            media_type="application/pdf",
            folders=("root", f"folder-{number % 20}"),
            live=True,
        )
        for number in range(count)
    ]


async def longest_stall(stop: asyncio.Event) -> float:
    worst, last = 0.0, time.perf_counter()
    while not stop.is_set():
        await asyncio.sleep(0.001)
        now = time.perf_counter()
        worst, last = max(worst, now - last), now
    return worst


async def measure(index: VectorIndex, points: list[Point], random_: random.Random) -> dict:
    began = time.perf_counter()
    await index.check()
    opened = time.perf_counter() - began
    stop = asyncio.Event()
    stall = asyncio.create_task(longest_stall(stop))
    began = time.perf_counter()
    for start in range(0, len(points), PER_IMPORT):
        await index.upsert(points[start : start + PER_IMPORT])
    inserted = time.perf_counter() - began
    taken = []
    for _ in range(SEARCHES):
        wanted = random_.choice(points)
        began = time.perf_counter()
        hits = await index.search(
            vector=wanted.vector,
            text=wanted.text[:60],
            where=SearchFilter(org_id=wanted.org_id),
            limit=10,
        )
        taken.append(time.perf_counter() - began)
        assert hits[0].point.point_id == wanted.point_id
    began = time.perf_counter()
    assert await index.set_live(import_id="imp-7", round_=1, live=False) == PER_IMPORT
    hidden = time.perf_counter() - began
    assert await index.count() == len(points)
    stop.set()
    children = psutil.Process().children()
    return {
        "open_ms": round(opened * 1000, 1),
        "insert_s": round(inserted, 2),
        "points_per_s": round(len(points) / inserted),
        "search_median_ms": round(statistics.median(taken) * 1000, 2),
        "search_max_ms": round(max(taken) * 1000, 2),
        "set_live_ms": round(hidden * 1000, 2),
        "longest_loop_stall_ms": round(await stall * 1000, 1),
        "child_rss_mb": round(sum(c.memory_info().rss for c in children) / 2**20, 1),
    }


async def main(count: int) -> None:
    warnings.simplefilter("ignore")
    points = made_up(count, random.Random(1))
    results = {}
    for name in ("edge", "qdrant_local"):
        with tempfile.TemporaryDirectory() as folder:
            index: VectorIndex
            if name == "edge":
                index = EdgeIndex(Path(folder), model_name="bench", dimension=DIMENSION)
            else:
                index = ServerIndex.local(folder, model_name="bench", dimension=DIMENSION)
            results[name] = await measure(index, points, random.Random(2))
            await index.aclose()
        print(name, results[name], flush=True)
    machine = {"cpus": os.cpu_count(), "python": platform.python_version()}
    print(json.dumps({"bench": "vectors", "points": count, **machine, **results}))


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))

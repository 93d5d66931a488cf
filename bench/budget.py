"""What it costs to ask for a turn at Microsoft Graph: in memory, and in Redis with others.

Run: ``python bench/budget.py [COUNT]``. Prints one line for people and one for programs.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

# It measures a checkout.
sys.path[:0] = ["src"]

from drivefeed.domain.budget import Budget, Lane  # noqa: E402 - after the path above
from drivefeed.queue.embedded import EmbeddedValkey  # noqa: E402 - after the path above
from drivefeed.queue.script import RedisScript  # noqa: E402 - after the path above
from drivefeed.sources.graph.budget_book import LocalBook  # noqa: E402 - after the path above
from drivefeed.sources.graph.budget_gate import BookedGate  # noqa: E402 - after the path above
from drivefeed.sources.graph.budget_shared import (  # noqa: E402 - after the path above
    SharedBook,
    script_text,
)
from drivefeed.system import SystemClock, SystemIds  # noqa: E402 - after the path above

_PLENTY = Budget(600_000_000, share=0.5)
"""Nobody waits: what is measured is the asking."""


async def _enter(gate: BookedGate, count: int) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    for _ in range(count):
        await gate.enter(1, Lane.BACKFILL)
    return {
        "us": round((time.perf_counter() - wall) / count * 1e6, 1),
        "cpu_us": round((time.process_time() - cpu) / count * 1e6, 1),
    }


async def measure(count: int) -> dict[str, Any]:
    clock, ids = SystemClock(), SystemIds()
    found = {"local": await _enter(BookedGate(LocalBook(_PLENTY, clock), clock, ids), count)}
    with tempfile.TemporaryDirectory() as path:
        valkey = EmbeddedValkey(Path(path) / "queue")
        script = RedisScript(await valkey.start(), script_text())
        try:
            book = SharedBook(_PLENTY, script, name="bench", member="one", clock=clock)
            gate = BookedGate(book, clock, ids)
            await _enter(gate, 10)
            await asyncio.sleep(1)
            found["shared"] = await _enter(gate, count)
        finally:
            await script.aclose()
            await valkey.stop()
    return {"count": count, **found}


if __name__ == "__main__":
    result = asyncio.run(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 3_000))
    local, shared = result["local"], result["shared"]
    print(
        f"One turn: {local['us']} µs in memory; {shared['us']} µs in Redis, of which "
        f"{shared['cpu_us']} µs are CPU of this process."
    )
    print(json.dumps(result))

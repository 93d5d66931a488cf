"""What a download and a crawl cost: memory, and time on the event loop."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
SIZE = 200_000_000

READER = """
import asyncio, hashlib, sys
import psutil
from drivefeed.domain.remote import DriveRef
from drivefeed.sources.graph import ClientSecret, GraphAccount, QuickXor
from integration.graph_source.kit import RealClock, source_of

async def main(drive, small, large, client_secret, **account):
    sign_in = ClientSecret(client_secret)
    source = source_of(GraphAccount("sim", "sim", sign_in=sign_in, **account), RealClock())
    ref, me = DriveRef("sim", drive), psutil.Process()
    async with source.download(ref, small) as download:
        async for _ in download.chunks():
            pass
    before, most, size, hasher = me.memory_info().rss, 0, 0, QuickXor()
    async with source.download(ref, large) as download:
        async for chunk in download.chunks():
            size += len(chunk)
            hasher.update(chunk)
            most = max(most, me.memory_info().rss - before)
    print(size, most, hasher.base64digest())
    await source.aclose()

asyncio.run(main(**dict(pair.split("=", 1) for pair in sys.argv[1:])))
"""


async def test_a_large_file_with_two_cuts_passes_through_in_bounded_memory() -> None:
    from graphsim.bodies import SyntheticBody, hash_body
    from graphsim.serving import serve
    from integration.graph_source.kit import sim_state

    async with serve(state=sim_state()) as sim:
        body = SyntheticBody(5, SIZE)
        small = sim.memory.create_file("small", b"x")
        large = sim.memory.create_file("large", body)
        sim.faults.add("truncate", op="download", name="large", after=60_000_000)
        sim.faults.add("reset", op="download", name="large", after=60_000_000)
        ends = sim.endpoints
        facts = {
            "drive": sim.memory.id, "small": small.id, "large": large.id,
            "tenant_id": ends.tenant_id, "client_id": ends.client_id,
            "client_secret": ends.client_secret, "authority": ends.login_url,
            "graph_url": ends.graph_url, "ca_file": ends.ca_file,
        }  # fmt: skip
        reader = await asyncio.create_subprocess_exec(
            sys.executable, "-c", READER, *(f"{name}={value}" for name, value in facts.items()),
            stdout=subprocess.PIPE,
            env={"PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"},
        )  # fmt: skip
        printed, _ = await reader.communicate()
        size, most, digest = printed.decode().split()
        assert int(size) == SIZE
        assert digest == await asyncio.to_thread(hash_body, body)
        assert sim.log.count("download", item=large.id) == 3
        assert int(most) < 24_000_000

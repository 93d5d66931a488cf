from __future__ import annotations

import gzip
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from graphsim.serving import GraphSim, serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from graphsim.items import Item

CONTENT = b"0123456789" * 100


@pytest.fixture
async def sim() -> AsyncIterator[GraphSim]:
    async with serve() as running:
        yield running


@pytest.fixture
def file(sim: GraphSim) -> Item:
    return sim.memory.create_file("a.docx", CONTENT)


async def _got(sim: GraphSim, file: Item, **headers: str) -> httpx.Response:
    """Return a download by its URL, as the bytes came over the wire."""
    own = {"Authorization": f"Bearer {sim.access_token()}"}
    url = f"{sim.endpoints.graph_url}/drives/{sim.endpoints.drive_id}/items/{file.id}/content"
    plain = {"Accept-Encoding": "identity"} | {k.replace("_", "-"): v for k, v in headers.items()}
    async with httpx.AsyncClient(timeout=10) as client:
        link = (await client.get(url, headers=own)).headers["location"]
        async with client.stream("GET", link, headers=plain) as answer:
            raw = b"".join([block async for block in answer.aiter_raw()])
        return httpx.Response(
            answer.status_code, headers={**answer.headers, "x-raw": str(len(raw))},
            extensions={"raw": raw},
        )  # fmt: skip


async def test_bodies_that_are_coded_or_altered_or_of_another_part(
    sim: GraphSim, file: Item
) -> None:
    sim.faults.add("gzip", op="download")
    sim.faults.add("gzip", op="download", with_length=True)
    for length in (False, True):
        answer = await _got(sim, file)
        raw = answer.extensions["raw"]
        assert answer.headers["content-encoding"] == "gzip"
        assert gzip.decompress(raw) == CONTENT
        assert ("content-length" in answer.headers) is length
    sim.faults.add("alter", op="download", fresh=True, count=2)
    bodies = [(await _got(sim, file)).extensions["raw"] for _ in range(2)]
    assert bodies[0] != bodies[1]
    assert all(body.startswith(CONTENT) for body in bodies)
    sim.faults.add("alter", op="download", keep=10, count=2)
    assert (await _got(sim, file)).extensions["raw"] == CONTENT[:10]
    answer = await _got(sim, file, range="bytes=4-")
    assert (answer.extensions["raw"], answer.headers["content-range"]) == (
        b"456789",
        "bytes 4-9/10",
    )
    sim.faults.add("wrong_range", op="download")
    answer = await _got(sim, file, range="bytes=4-5")
    assert (answer.extensions["raw"], answer.headers["content-range"]) == (b"345", "bytes 3-5/1000")
    old = (await _got(sim, file)).headers["etag"]
    sim.memory.replace(file.id, b"another one")
    sim.faults.add("ignore_if_range", op="download")
    answer = await _got(sim, file, range="bytes=1-", if_range=old)
    assert (answer.status_code, answer.extensions["raw"]) == (206, b"nother one")
    assert (await _got(sim, file, range="bytes=1-", if_range=old)).status_code == 200


async def test_answers_that_are_slow(sim: GraphSim, file: Item) -> None:
    began = time.monotonic()
    sim.faults.add("drip", op="download", size=250, seconds=0.02)
    assert (await _got(sim, file)).extensions["raw"] == CONTENT
    assert time.monotonic() - began >= 0.08
    sim.faults.add("hang", op="download", seconds=30)
    headers = {"Authorization": f"Bearer {sim.access_token()}"}
    url = f"{sim.endpoints.graph_url}/drives/{sim.endpoints.drive_id}/items/{file.id}/content"
    async with httpx.AsyncClient(timeout=0.2) as client:
        link = (await client.get(url, headers=headers, timeout=10)).headers["location"]
        with pytest.raises(httpx.ReadTimeout):
            await client.get(link)

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from graphsim.serving import GraphSim, serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from graphsim.items import Item

CONTENT = b"0123456789" * 1000


@pytest.fixture
async def sim() -> AsyncIterator[GraphSim]:
    async with serve(page_size=2) as running:
        yield running


@pytest.fixture
def file(sim: GraphSim) -> Item:
    return sim.memory.create_file("a.txt", CONTENT)


@pytest.fixture
async def client(sim: GraphSim) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {sim.access_token()}"}
    base = f"{sim.endpoints.graph_url}/drives/{sim.endpoints.drive_id}/"
    async with httpx.AsyncClient(headers=headers, base_url=base, timeout=10) as made:
        yield made


async def _download(client: httpx.AsyncClient, file: Item, **headers: str) -> httpx.Response:
    answer = await client.get(f"items/{file.id}/content")
    async with httpx.AsyncClient(timeout=10) as bare:
        return await bare.get(answer.headers["location"], headers=headers)


async def test_a_status_as_often_as_told_after_those_let_through(
    sim: GraphSim, client: httpx.AsyncClient
) -> None:
    sim.faults.add("status", op="item", status=503, retry_after="7", inner="busy", skip=1, count=2)
    answers = [await client.get("root") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 503, 503, 200]
    assert answers[1].headers["retry-after"] == "7"
    error = answers[1].json()["error"]
    assert error["code"] == "serviceNotAvailable"
    assert error["innerError"]["code"] == "busy"
    assert [entry.fault for entry in sim.log] == [None, "status", "status", None]


@pytest.mark.parametrize("value", [None, "0", "-1", "abc", "Wed, 21 Oct 2037 07:28:00 GMT"])
async def test_throttling_with_any_retry_after(
    sim: GraphSim, client: httpx.AsyncClient, value: str | None
) -> None:
    sim.faults.add("throttle", retry_after=value)
    answer = await client.get("root")
    assert answer.status_code == 429
    assert answer.headers.get("retry-after") == value


async def test_a_fault_hits_only_what_it_matches(
    sim: GraphSim, client: httpx.AsyncClient, file: Item
) -> None:
    other = sim.memory.create_file("b.txt", b"")
    sim.faults.add("status", item=file.id, status=404, count=-1)
    sim.faults.add("status", url="/children?", status=500, count=-1)
    assert (await client.get(f"items/{file.id}")).status_code == 404
    assert (await client.get(f"items/{other.id}")).status_code == 200
    assert (await client.get("root/children")).status_code == 200
    assert (await client.get("root/children?$top=1")).status_code == 500
    sim.faults.clear()
    assert (await client.get(f"items/{file.id}")).status_code == 200


async def test_a_truncated_body_breaks_off_in_order(
    sim: GraphSim, client: httpx.AsyncClient, file: Item
) -> None:
    sim.faults.add("truncate", op="download", after=4321)
    answer = await client.get(f"items/{file.id}/content")
    received = b""
    async with httpx.AsyncClient() as bare:
        with pytest.raises(httpx.RemoteProtocolError):  # noqa: PT012 - the stream is the act
            async with bare.stream("GET", answer.headers["location"]) as stream:
                assert stream.headers["content-length"] == str(len(CONTENT))
                async for block in stream.aiter_raw():
                    received += block
    assert received == CONTENT[:4321]
    entry = sim.log.entries(op="download")[0]
    assert (entry.bytes, entry.complete, entry.fault) == (4321, False, "truncate")
    assert (await _download(client, file, Range="bytes=4321-")).content == CONTENT[4321:]


@pytest.mark.parametrize("after", [0, 100])
async def test_a_connection_is_reset(
    sim: GraphSim, client: httpx.AsyncClient, file: Item, after: int
) -> None:
    sim.faults.add("reset", op="download", after=after)
    with pytest.raises((httpx.ReadError, httpx.RemoteProtocolError)):
        await _download(client, file)
    assert (await _download(client, file)).content == CONTENT


async def test_a_stall_makes_an_impatient_client_give_up(
    sim: GraphSim, client: httpx.AsyncClient, file: Item
) -> None:
    sim.faults.add("stall", op="download", after=10, seconds=30)
    answer = await client.get(f"items/{file.id}/content")
    async with httpx.AsyncClient(timeout=0.3) as bare:
        with pytest.raises(httpx.ReadTimeout):
            await bare.get(answer.headers["location"])


async def test_bodies_that_are_not_as_announced(
    sim: GraphSim, client: httpx.AsyncClient, file: Item
) -> None:
    sim.faults.add("no_length", op="download")
    chunked = await _download(client, file)
    assert "content-length" not in chunked.headers
    assert chunked.content == CONTENT
    sim.faults.add("ignore_range", op="download")
    whole = await _download(client, file, Range="bytes=5-")
    assert (whole.status_code, whole.content) == (200, CONTENT)
    sim.faults.add("alter", op="download", extra="more")
    assert (await _download(client, file)).content == CONTENT + b"more"
    sim.faults.add("expired_url", op="download")
    assert (await _download(client, file)).status_code == 401
    sim.faults.add("inline", op="content")
    inline = await client.get(f"items/{file.id}/content")
    assert (inline.status_code, inline.content) == (200, CONTENT)


async def test_delta_may_be_gone(sim: GraphSim, client: httpx.AsyncClient) -> None:
    sim.faults.add("gone", op="delta", inner="resyncChangesUploadDifferences")
    sim.faults.add("gone", op="delta", location=False)
    first, second = [await client.get("root/delta") for _ in range(2)]
    assert first.status_code == second.status_code == 410
    error = first.json()["error"]
    assert error["innerError"]["code"] == "resyncChangesUploadDifferences"
    assert (await client.get(first.headers["location"])).status_code == 200
    assert "location" not in second.headers


async def test_expired_tokens_lead_back_to_a_crawl(
    sim: GraphSim, client: httpx.AsyncClient
) -> None:
    link = (await client.get("root/delta?token=latest")).json()["@odata.deltaLink"]
    sim.drive.expire_tokens()
    answer = await client.get(link)
    assert answer.status_code == 410
    assert (await client.get(answer.headers["location"])).json()["value"]


async def test_pages_that_mislead(sim: GraphSim, client: httpx.AsyncClient, file: Item) -> None:
    sim.faults.add("empty_page", op="delta", count=2)
    page, links = {"@odata.nextLink": f"{client.base_url}root/delta"}, set()
    for _ in range(2):
        links.add(page["@odata.nextLink"])
        page = (await client.get(page["@odata.nextLink"])).json()
        assert page["value"] == []
    assert len(links) == 2
    page = (await client.get(page["@odata.nextLink"])).json()
    assert [item["id"] for item in page["value"]] == [sim.drive.tree.root_id, file.id]

    sim.faults.add("duplicate", op="delta")
    sim.faults.add("shuffle", op="delta")
    page = (await client.get("root/delta")).json()
    root = sim.drive.tree.root_id
    assert [item["id"] for item in page["value"]] == [file.id, file.id, root, root]

    sim.faults.add("loop", op="delta")
    page = (await client.get("root/delta")).json()
    assert page["@odata.nextLink"] == f"{client.base_url}root/delta"
    assert "@odata.deltaLink" not in page
    sim.faults.add("loop", op="delta", fresh=True, count=2)
    links = {page["@odata.nextLink"]}
    for _ in range(2):
        page = (await client.get(page["@odata.nextLink"])).json()
        assert [item["id"] for item in page["value"]] == [root, file.id]
        links.add(page["@odata.nextLink"])
    assert len(links) == 3

    sim.faults.add("drop_fields", op="delta", fields=["size", "file"])
    page = (await client.get("root/delta")).json()
    assert all({"size", "file"}.isdisjoint(item) for item in page["value"])


async def test_an_infected_file_is_refused(sim: GraphSim, client: httpx.AsyncClient) -> None:
    file = sim.memory.create_file("bad.exe", b"x", malware={"description": "test"})
    answer = await client.get(f"items/{file.id}/content")
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "malwareDetected")


def test_an_unknown_fault_is_refused(sim: GraphSim) -> None:
    with pytest.raises(ValueError, match="no fault called"):
        sim.faults.add("explode")


async def test_everything_through_the_admin_port(sim: GraphSim, client: httpx.AsyncClient) -> None:
    drive = sim.drive.id
    async with httpx.AsyncClient(base_url=sim.endpoints.admin_url) as admin:
        made = await admin.post(
            f"/drives/{drive}/changes",
            json=[{"do": "folder", "name": "f"}, {"do": "file", "name": "x", "text": "hello"}],
        )
        folder, file = (item["id"] for item in made.json())
        await admin.post(
            f"/drives/{drive}/changes", json=[{"do": "move", "item": file, "parent": folder}]
        )
        assert (await client.get(f"{client.base_url}root:/f/x")).json()["id"] == file
        fault = {"kind": "status", "status": 429, "match": {"op": "item"}, "count": -1}
        assert (await admin.post("/faults", json=fault)).status_code == 201
        assert (await client.get("root")).status_code == 429
        assert (await admin.get("/faults")).json()[0]["hits"] == 1
        await admin.delete("/faults")
        assert (await client.get("root")).status_code == 200
        log = (await admin.get("/log", params={"since": 1, "op": "item"})).json()
        assert [entry["status"] for entry in log["entries"]] == [429, 200]
        counters = (await admin.get("/counters")).json()
        assert counters["authorization_on_download_host"] == 0
        assert counters["operations"]["item"]["requests"] == 3
        await admin.patch(f"/drives/{drive}/quirks", json={"link_form": "function"})
        assert sim.drive.quirks.link_form == "function"
        await admin.patch(f"/drives/{drive}/labels", json={"X": ["label"]})
        assert sim.drive.labels == {"X": ["label"]}
        refused = await admin.post("/faults", json={"kind": "explode"})
        assert refused.status_code == 400

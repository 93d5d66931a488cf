from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import pytest

from graphsim.bodies import SyntheticBody
from graphsim.clock import ManualClock
from graphsim.items import Profile
from graphsim.quickxor import quickxor
from graphsim.serving import GraphSim, serve

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def sim() -> AsyncIterator[GraphSim]:
    async with serve(clock=ManualClock(), page_size=3, url_lifetime=60) as running:
        yield running


@pytest.fixture
async def client(sim: GraphSim) -> AsyncIterator[httpx.AsyncClient]:
    headers = {"Authorization": f"Bearer {sim.access_token()}"}
    base = f"{sim.endpoints.graph_url}/drives/{sim.endpoints.drive_id}/"
    async with httpx.AsyncClient(headers=headers, base_url=base, timeout=10) as made:
        yield made


@pytest.fixture
async def bare() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(timeout=10) as made:
        yield made


async def _crawl(client: httpx.AsyncClient, url: str) -> tuple[list[dict[str, Any]], str]:
    items: list[dict[str, Any]] = []
    while True:
        page = (await client.get(url)).raise_for_status().json()
        items += page["value"]
        if "@odata.deltaLink" in page:
            return items, page["@odata.deltaLink"]
        url = page["@odata.nextLink"]


async def test_a_crawl_and_then_only_changes(sim: GraphSim, client: httpx.AsyncClient) -> None:
    folder = sim.memory.create_folder("folder")
    files = [sim.memory.create_file(f"{n}.txt", b"x", folder.id) for n in range(5)]
    items, link = await _crawl(client, "root/delta?$select=id,name,deleted&$top=2")
    assert [item["id"] for item in items] == [
        sim.drive.tree.root_id,
        folder.id,
        *(file.id for file in files),
    ]
    assert all(item.keys() == {"id", "name"} for item in items)
    sim.memory.delete(files[0].id)
    changes, link = await _crawl(client, link)
    assert [item["id"] for item in changes] == [sim.drive.tree.root_id, files[0].id]
    assert changes[1]["deleted"] == {"state": "deleted"}
    assert await _crawl(client, link) == ([], link)


async def test_links_stay_on_the_callers_host_and_prefix(
    sim: GraphSim, client: httpx.AsyncClient
) -> None:
    for number in range(4):
        sim.memory.create_file(f"{number}", b"")
    for prefix in ("/v1.0", "/beta", "/_api/v2.0"):
        base = f"{sim.endpoints.login_http_url.replace('127.0.0.1', 'localhost')}{prefix}"
        url = f"{base}/drives/{sim.endpoints.drive_id}/root/delta"
        page = (await client.get(url)).json()
        assert page["@odata.nextLink"].startswith(f"{base}/drives/")
        children = (await client.get(url.replace("delta", "children"))).json()
        assert children["@odata.nextLink"].startswith(f"{base}/drives/")


async def test_function_style_links_work(sim: GraphSim, client: httpx.AsyncClient) -> None:
    sim.drive.quirks.link_form = "function"
    for number in range(4):
        sim.memory.create_file(f"{number}", b"")
    items, link = await _crawl(client, "root/delta?$select=id")
    assert len(items) == 5
    assert "/microsoft.graph.delta(token='" in link
    assert await _crawl(client, link) == ([], link)


async def test_children_page_by_page_even_while_they_change(
    sim: GraphSim, client: httpx.AsyncClient
) -> None:
    for number in range(7):
        sim.memory.create_file(f"{number}.txt", b"")
    first = (await client.get("root/children?$top=2&$select=name")).json()
    assert [item["name"] for item in first["value"]] == ["0.txt", "1.txt"]
    sim.memory.delete(sim.drive.tree.child(sim.drive.tree.root_id, "0.txt").id)  # type: ignore[union-attr]
    names, url = [], first.get("@odata.nextLink")
    while url:
        page = (await client.get(url)).json()
        names += [item["name"] for item in page["value"]]
        url = page.get("@odata.nextLink")
    assert names == [f"{n}.txt" for n in range(2, 7)]


async def test_an_item_by_every_address(sim: GraphSim, client: httpx.AsyncClient) -> None:
    folder = sim.memory.create_folder("a folder")
    file = sim.memory.create_file("100% it's #1.txt", b"x", folder.id)
    for url in (
        f"items/{file.id}",
        f"items/{file.id.lower()}/",
        "root:/a%20folder/100%25%20it's%20%231.txt",
        "root:/A%20FOLDER/./100%25%20it's%20%231.txt:",
        f"items/{folder.id}:/100%25%20it%27s%20%231.txt:",
        f"/v1.0/Drives('{sim.drive.id}')/Items('{file.id}')",
        f"/v1.0/users/{sim.endpoints.user_id}/drive/items/{file.id}",
        f"/v1.0/sites/{sim.endpoints.site_id}/drive/items/{file.id}",
        f"/v1.0/sites/root/drives/{sim.drive.id}/items/{file.id}",
    ):
        answer = await client.get(url if url.startswith("/") else f"{client.base_url}{url}")
        if url.startswith("/"):
            answer = await client.get(f"{sim.endpoints.login_http_url}{url}")
        assert answer.json().get("id") == file.id, url
    assert (await client.get(f"{client.base_url}root:/nowhere")).json()["error"][
        "code"
    ] == "itemNotFound"


async def test_me_needs_a_person(sim: GraphSim, client: httpx.AsyncClient) -> None:
    url = f"{sim.endpoints.graph_url}/me/drive"
    assert (await client.get(url)).status_code == 400
    person = {"Authorization": f"Bearer {sim.access_token(delegated=True)}"}
    assert (await client.get(url, headers=person)).json()["id"] == sim.drive.id
    drives = (await client.get(f"{sim.endpoints.graph_url}/me/drives", headers=person)).json()
    assert [drive["id"] for drive in drives["value"]] == [sim.drive.id]
    quota = (await client.get(f"{url}?select=quota", headers=person)).json()
    assert quota.keys() == {"quota"}


@pytest.mark.parametrize("token", [None, "Bearer made-up", "Basic eDp5"])
async def test_graph_wants_a_good_token(
    sim: GraphSim, bare: httpx.AsyncClient, token: str | None
) -> None:
    headers = {"Authorization": token} if token else {}
    answer = await bare.get(f"{sim.endpoints.graph_url}/drives/x/root", headers=headers)
    assert answer.status_code == 401
    assert answer.json()["error"]["code"] == "InvalidAuthenticationToken"


async def test_an_expired_or_revoked_token_is_refused(
    sim: GraphSim, client: httpx.AsyncClient
) -> None:
    assert (await client.get("root")).status_code == 200
    assert isinstance(sim.clock, ManualClock)
    sim.clock.advance(3600)
    refused = await client.get("root")
    assert refused.status_code == 401
    assert "expired_token" in refused.headers["www-authenticate"]
    client.headers["Authorization"] = f"Bearer {sim.access_token()}"
    assert (await client.get("root")).status_code == 200
    sim.app.entra.grants.revoke_access_tokens()
    assert (await client.get("root")).status_code == 401


async def test_standard_headers(sim: GraphSim, client: httpx.AsyncClient) -> None:
    sim.memory.create_file("x", b"")
    for url in ("root", "root:/nowhere", "root/delta"):
        answer = await client.get(f"{client.base_url}{url}", headers={"client-request-id": "mine"})
        assert answer.headers["client-request-id"] == "mine"
        assert answer.headers["content-type"].startswith("application/json;odata.metadata=minimal")
        for name in ("request-id", "date", "x-ms-ags-diagnostic"):
            assert answer.headers[name]


async def _location(client: httpx.AsyncClient, item: str) -> str:
    answer = await client.get(f"items/{item}/content")
    assert answer.status_code == 302
    return answer.headers["location"]


async def test_a_download_is_on_another_host_and_wants_no_token(
    sim: GraphSim, client: httpx.AsyncClient, bare: httpx.AsyncClient
) -> None:
    file = sim.memory.create_file("a.txt", b"content")
    url = await _location(client, file.id)
    assert urlsplit(url).hostname != urlsplit(sim.endpoints.graph_url).hostname
    refused = await client.get(url)
    assert refused.status_code == 401
    assert len(sim.log.leaked_authorization()) == 1
    assert (await bare.get(url)).content == b"content"
    assert sim.log.count("download") == 2


async def test_a_download_url_expires(
    sim: GraphSim, client: httpx.AsyncClient, bare: httpx.AsyncClient
) -> None:
    file = sim.memory.create_file("a.txt", b"content")
    url = await _location(client, file.id)
    assert isinstance(sim.clock, ManualClock)
    sim.clock.advance(61)
    assert (await bare.get(url)).status_code == 401
    assert (await bare.get(await _location(client, file.id))).status_code == 200
    assert (await bare.get(url.replace("tempauth=", "tempauth=x"))).status_code == 401


async def test_ranges_of_a_download(
    sim: GraphSim, client: httpx.AsyncClient, bare: httpx.AsyncClient
) -> None:
    content = SyntheticBody(1, 3_000_000).read(0, 3_000_000)
    file = sim.memory.create_file("a.bin", content)
    url = await _location(client, file.id)
    whole = await bare.get(url)
    assert whole.content == content
    part = await bare.get(url, headers={"Range": "bytes=1000000-2999998"})
    assert (part.status_code, part.content) == (206, content[1_000_000:-1])
    assert part.headers["content-range"] == "bytes 1000000-2999998/3000000"
    tail = await bare.get(url, headers={"Range": "bytes=-5", "If-Range": whole.headers["etag"]})
    assert (tail.status_code, tail.content) == (206, content[-5:])
    outside = await bare.get(url, headers={"Range": "bytes=3000000-"})
    assert outside.status_code == 416
    assert outside.headers["content-range"] == "bytes */3000000"
    unchanged = await bare.get(url, headers={"If-None-Match": whole.headers["etag"]})
    assert (unchanged.status_code, unchanged.content) == (304, b"")
    sim.memory.replace(file.id, b"new")
    changed = await bare.get(url, headers={"Range": "bytes=1-", "If-Range": whole.headers["etag"]})
    assert (changed.status_code, changed.content) == (200, b"new")


async def test_several_ranges_at_once(
    sim: GraphSim, client: httpx.AsyncClient, bare: httpx.AsyncClient
) -> None:
    file = sim.memory.create_file("a.txt", b"0123456789")
    url = await _location(client, file.id)
    answer = await bare.get(url, headers={"Range": "bytes=0-1,8-"})
    assert answer.status_code == 206
    kind, _, boundary = answer.headers["content-type"].partition("; boundary=")
    assert kind == "multipart/byteranges"
    parts = answer.content.split(f"--{boundary}".encode())
    assert [part.split(b"\r\n\r\n")[-1].strip() for part in parts[1:-1]] == [b"01", b"89"]


async def test_a_large_synthetic_file_has_its_hash(
    sim: GraphSim, client: httpx.AsyncClient, bare: httpx.AsyncClient
) -> None:
    file = sim.memory.create_file("a.bin", SyntheticBody(3, 5_000_000))
    shown = (await client.get(f"items/{file.id}")).json()
    body = (await bare.get(shown["@microsoft.graph.downloadUrl"])).content
    assert len(body) == shown["size"] == 5_000_000
    assert shown["file"]["hashes"]["quickXorHash"] == quickxor(body)


async def test_the_log_counts_what_happened(
    sim: GraphSim, client: httpx.AsyncClient, bare: httpx.AsyncClient
) -> None:
    file = sim.memory.create_file("a.txt", b"content")
    url = await _location(client, file.id)
    since = sim.log.last
    sim.faults.add("stall", op="download", count=3, seconds=0.2)
    await asyncio.gather(*(bare.get(url) for _ in range(3)))
    assert sim.log.count("download", since=since, item=file.id) == 3
    assert sim.log.max_in_flight_by_op["download"] == 3
    assert sim.log.totals()["download"]["bytes"] == 21
    assert all("tempauth=***" in one.url for one in sim.log.entries(op="download"))


async def test_a_removed_drive_is_a_malformed_id(sim: GraphSim, client: httpx.AsyncClient) -> None:
    sim.drive.quirks.cutoff = True
    answer = await client.get("root/delta")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalidRequest")


async def test_below_the_root_delta_may_be_refused(
    sim: GraphSim, client: httpx.AsyncClient
) -> None:
    folder = sim.memory.create_folder("folder")
    assert (await client.get(f"items/{sim.drive.tree.root_id}/delta")).status_code == 200
    for mode, status in (("work", 200), ("not_supported", 501), ("not_found", 404)):
        sim.drive.quirks.scoped_delta = mode
        assert (await client.get(f"items/{folder.id}/delta")).status_code == status


async def test_personal_ids_are_compared_loosely() -> None:
    async with serve(profile=Profile.PERSONAL) as sim:
        file = sim.memory.create_file("a.txt", b"x")
        headers = {"Authorization": f"Bearer {sim.access_token()}"}
        spelled = sim.drive.id.upper().lstrip("0")
        url = f"{sim.endpoints.graph_url}/drives/{spelled}/items/{file.id}"
        async with httpx.AsyncClient(headers=headers) as client:
            shown = (await client.get(url)).json()
        assert shown["id"] == file.id == f"{sim.drive.id.upper()}!102"
        assert shown["parentReference"]["path"] == f"/drives/{sim.drive.id}/root:"

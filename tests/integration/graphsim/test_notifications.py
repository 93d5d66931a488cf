from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx

from graphsim.clock import iso
from graphsim.serving import serve

if TYPE_CHECKING:
    from pathlib import Path

    from graphsim.serving import GraphSim


async def _hook(
    told: asyncio.Event, reader: asyncio.StreamReader, out: asyncio.StreamWriter
) -> None:
    """Answer one request as an endpoint of notifications does."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    token = httpx.URL(head.split(" ")[1]).params.get("validationToken")
    if token is None:
        told.set()
    body = (token or "").encode()
    lines = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n\r\n"
    out.write(lines.encode() + body)
    await out.drain()
    out.close()


async def _subscribe(sim: GraphSim, url: str) -> None:
    wanted = {
        "changeType": "updated",
        "resource": f"drives/{sim.endpoints.drive_id}/root",
        "notificationUrl": url,
        "expirationDateTime": iso(sim.clock.now() + 3600),
    }
    headers = {"Authorization": f"Bearer {sim.access_token()}"}
    async with httpx.AsyncClient(headers=headers) as client:
        made = await client.post(f"{sim.endpoints.graph_url}/subscriptions", json=wanted)
    assert made.status_code == 201, made.text


async def test_a_change_of_a_real_folder_is_told(tmp_path: Path) -> None:
    folder, told = tmp_path / "served", asyncio.Event()
    folder.mkdir()
    server = await asyncio.start_server(lambda r, w: _hook(told, r, w), "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    async with server, serve(folder, state=tmp_path / "state") as sim:
        await _subscribe(sim, url)
        (folder / "new.txt").write_text("hello")
        async with asyncio.timeout(20):
            await told.wait()
        assert sim.drive.tree.child(sim.drive.tree.root_id, "new.txt")
        assert [one.kind for one in sim.subscriptions.courier.deliveries][:2] == [
            "validation",
            "change",
        ]

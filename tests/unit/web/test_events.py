"""Changes arrive; the catalog is looked at once for all; streams end when they should."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from drivefeed.catalog.api_keys import create_key
from drivefeed.catalog.key_revoking import revoke_key
from drivefeed.catalog.sessions import end_session, open_session
from drivefeed.web import events, watch
from support.waiting import until
from unit.web.conftest import ticking

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import httpx

    from unit.web.conftest import House


async def told(response: httpx.Response) -> AsyncIterator[tuple[str, Any]]:
    """Read events as a browser does."""
    name = ""
    async for line in response.aiter_lines():
        if line.startswith("event: "):
            name = line.removeprefix("event: ")
        elif line.startswith("data: "):
            yield name, json.loads(line.removeprefix("data: "))
        elif line.startswith(":"):
            yield "heartbeat", None


async def test_progress_arrives_without_asking_again(house: House) -> None:
    async with (
        house.client(house.key) as client,
        client.stream("GET", "/v1/events") as response,
    ):
        stream = told(response)
        name, first = await anext(stream)
        assert (name, first["percent"]) == ("connection", 75)
        await house.rig.bring_live("d")
        async with ticking(house.clock):
            name, second = await anext(stream)
        assert (name, second["percent"]) == ("connection", 100)
        assert second["latest_event"] > first["latest_event"]


async def test_pages_get_the_pieces_that_are_different(house: House) -> None:
    address = f"/events?connection={house.connection_id}"
    async with house.client(house.key) as client, client.stream("GET", address) as response:
        stream = told(response)
        first = dict([await anext(stream), await anext(stream)])
        assert first["piece"]["id"] == f"connection-{house.connection_id}"
        page = (await house.get(f"/connections/{house.connection_id}")).text
        assert first["piece"]["html"] in page
        assert f'data-mark="{first["changed"]["mark"]}"' in page
        await house.rig.bring_live("d")
        async with ticking(house.clock):
            second = dict([await anext(stream), await anext(stream)])
        assert "<strong>100 %</strong>" in second["piece"]["html"]
        assert second["changed"] != first["changed"]


async def test_one_look_serves_all_and_none_looks_when_nobody_listens(house: House) -> None:
    site = house.page.site
    before = site.watch.looks
    async with house.client(house.key) as client:
        streams = [client.stream("GET", "/v1/events") for _ in range(5)]
        responses = [await stream.__aenter__() for stream in streams]
        for response in responses:
            assert (await anext(told(response)))[0] == "connection"
        assert site.watch.looks == before + 1
        for stream in streams:
            await stream.__aexit__(None, None, None)
    await until(lambda: not site.watch._listeners, what="all listeners to be let go")
    looks = site.watch.looks
    for _ in range(3):
        house.clock.turn(seconds=1)
        await asyncio.sleep(0)
    assert site.watch.looks == looks


async def test_there_is_room_for_so_many_listeners(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "MOST_LISTENERS", 1)
    async with house.client(house.key) as client, client.stream("GET", "/v1/events") as one:
        assert one.status_code == 200
        second = await client.get("/v1/events")
        assert second.status_code == 503
        assert second.json()["reason"] == "too_many_listeners"


async def test_an_org_that_listens_much_leaves_room_for_others(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "MOST_LISTENERS", 3)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(house.client(house.key))
        own = [
            told(await stack.enter_async_context(client.stream("GET", "/v1/events")))
            for _ in range(3)
        ]
        for stream in own:
            await anext(stream)
        other = await stack.enter_async_context(house.client(house.strange_key))
        answer = await stack.enter_async_context(other.stream("GET", "/v1/events"))
        assert answer.status_code == 200
        # The oldest went for it; the others stay, and one more of either is too many.
        assert [name async for name, _ in own[0] if name == "connection"] == []
        assert (await client.get("/v1/events")).status_code == 503
        assert (await other.get("/v1/events")).status_code == 503


async def test_a_stream_lives_and_ends_with_its_key(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.01)
    async with house.client(house.key) as client, client.stream("GET", "/v1/events") as response:
        stream = told(response)
        heard = {(await anext(stream))[0] for _ in range(3)}
        assert "heartbeat" in heard
        await revoke_key(house.rig.catalog, house.key.key.prefix)
        last = [name async for name, _ in stream][-1]
        assert last == "signed-out"


@pytest.mark.parametrize("way", ["revoked", "signed out", "over"])
async def test_nothing_that_happened_after_its_end_is_told(house: House, way: str) -> None:
    key = house.key
    if way == "signed out":
        key = await open_session(house.rig.catalog, key.key)
    elif way == "over":
        key = await create_key(
            house.rig.catalog, org_id=house.rig.org_id, name="short", lives_ms=60_000
        )
    headers = {"Authorization": f"Bearer {key.text}"}
    if way == "signed out":
        port = house.page.url.rpartition(":")[2]
        headers = {"Cookie": f"drivefeed_{port}={key.text}"}
    async with (
        house.client(None, headers=headers) as client,
        client.stream("GET", "/v1/events") as response,
    ):
        stream = told(response)
        await anext(stream)
        if way == "revoked":
            await revoke_key(house.rig.catalog, key.key.prefix)
        elif way == "signed out":
            await end_session(house.rig.catalog, key.key)
        else:
            house.clock.turn(seconds=61)
        await house.rig.bring_live("d")
        async with ticking(house.clock):
            assert [name async for name, _ in stream] == ["signed-out"]


async def test_streams_end_when_the_server_does(house: House) -> None:
    async with house.client(house.key) as client, client.stream("GET", "/v1/events") as response:
        stream = told(response)
        await anext(stream)
        closing = asyncio.create_task(house.page.close())
        async with asyncio.timeout(20):
            assert [name async for name, _ in stream if name == "connection"] == []
            await closing


async def test_counts_that_take_long_are_shared_for_a_while(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_CHEAP_SECONDS", 0.0)
    monkeypatch.setattr(watch, "_REST_FACTOR", 1e9)
    site = house.page.site
    views = await asyncio.gather(*(site.watch.view(house.rig.org_id) for _ in range(5)))
    await house.rig.bring_live("d")
    later = await site.watch.view(house.rig.org_id)
    assert {view.number for view in views} == {later.number}
    monkeypatch.setattr(watch, "_REST_FACTOR", 0)
    assert (await site.watch.view(house.rig.org_id)).number == later.number + 1

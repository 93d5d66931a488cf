from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from graphsim.admin import admin_app
from graphsim.clock import iso
from unit.graphsim.kit import BASE, Desk, desk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from graphsim.subscriptions import Subscriptions


class Endpoint:
    """A client's endpoint, on loopback: answers handshakes, and takes what it is told."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.statuses: list[int] = []
        self.echo: str | None = None
        self.media_type = "text/plain"
        self.tokens: list[str] = []
        self.url = ""


@contextlib.contextmanager
def running() -> Iterator[Endpoint]:
    endpoint = Endpoint()

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            token = parse_qs(urlsplit(self.path).query).get("validationToken")
            if token:
                endpoint.tokens += token
                self._answer(200, endpoint.media_type, endpoint.echo or token[0])
                return
            endpoint.events += json.loads(body)["value"]
            self._answer(endpoint.statuses.pop(0) if endpoint.statuses else 202, "text/plain", "")

        def _answer(self, status: int, kind: str, text: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    endpoint.url = f"http://127.0.0.1:{server.server_port}/hook?of=me"
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
async def here() -> AsyncIterator[Desk]:
    async with desk() as made:
        yield made
        await made.app.close()


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with running() as made:
        yield made


@pytest.fixture
def own(here: Desk) -> Subscriptions:
    subscriptions = here.app.graph.subscriptions
    subscriptions.courier.pauses = (0.0, 0.0)
    return subscriptions


async def _subscribe(here: Desk, endpoint: Endpoint, **other: Any) -> httpx.Response:
    wanted = {
        "changeType": "updated",
        "resource": f"/drives/{here.drive.id}/root",
        "notificationUrl": endpoint.url,
        "clientState": "a secret",
        "expirationDateTime": iso(here.clock.now() + 3600),
    }
    return await here.client.post(f"{BASE}/v1.0/subscriptions", json=wanted | other)


async def test_a_change_is_told_and_says_nothing_of_the_item(
    here: Desk, endpoint: Endpoint, own: Subscriptions
) -> None:
    made = await _subscribe(here, endpoint, lifecycleNotificationUrl=endpoint.url)
    assert made.status_code == 201
    assert made.json()["clientState"] == "a secret"
    assert len(endpoint.tokens) == 2
    assert all(mark in endpoint.tokens[0] for mark in (" ", "%", "+", ":", "&"))
    here.drive.create_file("a.txt", b"one")
    here.drive.create_file("b.txt", b"one")
    await _arrived(own, endpoint, 1)
    assert endpoint.events == [
        {
            "subscriptionId": made.json()["id"],
            "clientState": "a secret",
            "tenantId": "tenant",
            "subscriptionExpirationDateTime": made.json()["expirationDateTime"],
            "changeType": "updated",
            "resource": f"/drives/{here.drive.id}/root",
            "resourceData": None,
        }
    ]


async def _arrived(own: Subscriptions, endpoint: Endpoint, count: int) -> None:
    async with asyncio.timeout(10):
        while len(endpoint.events) < count:  # noqa: ASYNC110 - it is another thread's list
            await asyncio.sleep(0.01)
    await own.settle()


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"changeType": "created"}, "'updated' only"),
        ({"resource": "/drives/DRIVE/items/x"}, "root of a drive"),
        ({"resource": "/drives/DRIVE/root:/folder:"}, "not to what is below"),
        ({"resource": "/users/x/messages"}, "root of a drive"),
        ({"clientState": "x" * 129}, "128"),
        ({"expirationDateTime": "2020-01-01T00:00:00Z"}, "in the future"),
        ({"expirationDateTime": "9000-01-01T00:00:00Z"}, "42300 minutes"),
        ({"notificationUrl": "https://graph.example.com/"}, "this machine only"),
        ({"notificationUrl": "http://127.0.0.1:9/"}, "nobody answered"),
    ],
)
async def test_what_is_refused(
    here: Desk, endpoint: Endpoint, other: dict[str, str], words: str
) -> None:
    given = {name: value.replace("DRIVE", here.drive.id) for name, value in other.items()}
    refused = await _subscribe(here, endpoint, **given)
    assert refused.status_code == 400
    assert words in refused.json()["error"]["message"]


@pytest.mark.parametrize(("echo", "kind"), [("OK", "text/plain"), (None, "text/html")])
async def test_a_handshake_that_is_not_the_token_fails(
    here: Desk, endpoint: Endpoint, echo: str | None, kind: str
) -> None:
    endpoint.echo, endpoint.media_type = echo, kind
    refused = await _subscribe(here, endpoint)
    assert refused.json()["error"]["code"] == "ValidationError"
    assert here.app.graph.subscriptions.alive() == []


async def test_the_life_of_a_subscription(
    here: Desk, endpoint: Endpoint, own: Subscriptions
) -> None:
    short = iso(here.clock.now() + 60)
    made = (await _subscribe(here, endpoint, expirationDateTime=short)).json()
    url = f"{BASE}/v1.0/subscriptions/{made['id']}"
    assert made["expirationDateTime"] == iso(here.clock.now() + 45 * 60)
    later = iso(here.clock.now() + 86_400)
    changed = await here.client.patch(url, json={"expirationDateTime": later})
    assert changed.json()["expirationDateTime"] == later
    (listed,) = (await here.client.get(f"{BASE}/v1.0/subscriptions")).json()["value"]
    assert (listed["id"], listed["clientState"]) == (made["id"], None)
    here.clock.advance(86_401)
    assert (await here.client.get(url)).status_code == 404
    here.drive.create_file("a.txt", b"")
    await own.settle()
    assert endpoint.events == []
    again = (await _subscribe(here, endpoint)).json()["id"]
    assert (await here.client.delete(f"{BASE}/v1.0/subscriptions/{again}")).status_code == 204
    assert own.alive() == []


async def test_a_subscription_that_must_be_reauthorized_is_silent(
    here: Desk, endpoint: Endpoint, own: Subscriptions
) -> None:
    made = await _subscribe(here, endpoint, lifecycleNotificationUrl=endpoint.url)
    identifier = made.json()["id"]
    assert await own.require_reauthorization(identifier)
    assert endpoint.events[0]["lifecycleEvent"] == "reauthorizationRequired"
    here.drive.create_file("a.txt", b"")
    await own.settle()
    assert len(endpoint.events) == 1
    url = f"{BASE}/v1.0/subscriptions/{identifier}/reauthorize"
    assert (await here.client.post(url)).status_code == 204
    here.drive.create_file("b.txt", b"")
    await _arrived(own, endpoint, 2)
    assert endpoint.events[1]["changeType"] == "updated"


async def test_notifications_are_tried_again_lost_and_repeated(
    here: Desk, endpoint: Endpoint, own: Subscriptions
) -> None:
    await _subscribe(here, endpoint)
    endpoint.statuses = [503, 500]
    here.drive.create_file("a.txt", b"")
    await _arrived(own, endpoint, 3)
    tried = [one for one in own.courier.deliveries if one.kind == "change"]
    assert [(one.attempt, one.status) for one in tried] == [(1, 503), (2, 500), (3, 202)]
    here.fault("drop_notification", op="notify", drive=here.drive.id)
    here.drive.create_file("b.txt", b"")
    await asyncio.sleep(0)
    await own.settle()
    assert own.courier.deliveries[-1].dropped
    assert len(endpoint.events) == 3
    here.fault("repeat_notification", op="notify")
    here.drive.create_file("c.txt", b"")
    await _arrived(own, endpoint, 5)


async def test_over_the_admin_port(here: Desk, endpoint: Endpoint, own: Subscriptions) -> None:
    made = await _subscribe(here, endpoint, lifecycleNotificationUrl=endpoint.url)
    identifier = made.json()["id"]
    transport = httpx.ASGITransport(admin_app(here.app))
    async with httpx.AsyncClient(transport=transport, base_url="http://admin") as admin:
        told = (await admin.get("/subscriptions")).json()
        assert told["subscriptions"][0]["id"] == identifier
        assert [one["kind"] for one in told["deliveries"]] == ["validation"] * 2
        assert told["subscriptions"][0]["clientState"] == "a secret"
        set_to = {"grants": 20, "latency": 0.5}
        assert (await admin.patch("/subscriptions", json=set_to)).status_code == 200
        assert (await admin.patch("/subscriptions", json={"grant": 20})).status_code == 400
        assert own.latency == 0.5
        renewed = await here.client.patch(
            f"{BASE}/v1.0/subscriptions/{identifier}",
            json={"expirationDateTime": iso(here.clock.now() + 86_400)},
        )
        assert renewed.json()["expirationDateTime"] == iso(here.clock.now() + 20)
        arrived = await admin.post(f"/subscriptions/{identifier}/reauthorization")
        assert arrived.json() == {"arrived": True}
        assert (await admin.delete(f"/subscriptions/{identifier}")).status_code == 204
    assert own.alive() == []

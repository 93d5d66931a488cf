"""Changes as they happen, by server-sent events.

A listener keeps nothing but what it was sent last, and is sent what differs from that. So a slow
reader misses steps in between, and never the end.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from drivefeed.catalog.browsing import org_connection
from drivefeed.domain.errors import DrivefeedError
from drivefeed.web.shapes import ConnectionShape, connection_shape, overview_shape
from drivefeed.web.site import Site, site_of
from drivefeed.web.visitors import Visitor, is_still_valid

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from drivefeed.catalog.api_keys import ApiKey
    from drivefeed.web.watch import Listener, View

HEARTBEAT_SECONDS: Final = 15.0
_RETRY_MS: Final = 2_000

Told = tuple[str, str, str]
"""The event's name, what it is about, and its data as one line."""
Tell = Callable[["View"], Iterator[Told]]

router = APIRouter()


@router.get("/events", include_in_schema=False)
async def page_events(request: Request, key: Visitor, connection: str | None = None) -> Response:
    """Send pieces of pages that are different: of all connections, or of one."""
    site = site_of(request)
    if connection is not None:
        await org_connection(site.catalog, key.org_id, connection)

    def tell(view: View) -> Iterator[Told]:
        pieces = pieces_of(site, key, view)
        for name, html in pieces.items():
            if connection is None or name == f"connection-{connection}":
                yield "piece", name, json.dumps({"id": name, "html": html})
        for one in view.progress:
            if one.connection.connection_id == connection:
                yield "changed", "", json.dumps({"mark": mark_of(connection_shape(one, view))})

    return EventStream(request, site, key, tell)


@router.get(
    "/v1/events",
    tags=["status"],
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {}}, "description": "Goes on."}},
)
async def api_events(request: Request, key: Visitor, connection: str | None = None) -> Response:
    """Send each connection, or one, whenever it stands differently: events named ``connection``."""
    site = site_of(request)
    if connection is not None:
        await org_connection(site.catalog, key.org_id, connection)

    def tell(view: View) -> Iterator[Told]:
        for one in view.progress:
            if connection in {None, one.connection.connection_id}:
                shape = connection_shape(one, view)
                yield "connection", shape.connection_id, shape.model_dump_json()

    return EventStream(request, site, key, tell)


def mark_of(one: ConnectionShape) -> str:
    """Return a text that is another whenever something happened to the connection's files."""
    counts = (one.found, one.searchable, one.in_progress, one.stale, one.held, one.failed)
    return ".".join(str(count) for count in (one.latest_event, *counts))


def pieces_of(site: Site, key: ApiKey, view: View) -> dict[str, str]:
    """Return the parts of pages that change, by their ids; made once for all listeners."""
    known = site.pieces.get(key.org_id)
    if known is not None and known[0] == view.number:
        return known[1]
    overview = overview_shape(key, view)
    pieces = {
        f"connection-{one.connection_id}": site.render("_card.html", one=one)
        for one in overview.connections
    }
    pieces["summary"] = site.render("_summary.html", overview=overview)
    if len(site.pieces) > _MOST_ORGS:
        site.pieces.clear()
    site.pieces[key.org_id] = (view.number, pieces)
    return pieces


_MOST_ORGS: Final = 200


class EventStream(Response):
    """An answer that goes on until the client goes, its key ends, or we do."""

    media_type = "text/event-stream"

    def __init__(self, request: Request, site: Site, key: ApiKey, tell: Tell) -> None:
        super().__init__()
        # The body has no length, and nothing on the way may hold it back.
        del self.headers["content-length"]
        self.headers["X-Accel-Buffering"] = "no"
        self._request = request
        self._site = site
        self._key = key
        self._tell = tell

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send events while the client is there."""
        del scope
        with self._site.watch.listening(self._key.org_id) as listener:
            await send(
                {
                    "type": "http.response.start",
                    "status": self.status_code,
                    "headers": self.raw_headers,
                }
            )
            async with asyncio.TaskGroup() as group:
                leaving = group.create_task(_until_gone(receive))
                telling = group.create_task(self._go_on(listener, send))
                await asyncio.wait({leaving, telling}, return_when=asyncio.FIRST_COMPLETED)
                leaving.cancel()
                telling.cancel()
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _go_on(self, listener: Listener, send: Send) -> None:
        await _say(send, f"retry: {_RETRY_MS}\n\n")
        sent: dict[tuple[str, str], str] = {}
        while not (self._site.watch.closed or listener.is_dismissed):
            view = await listener.next_view(HEARTBEAT_SECONDS)
            # An org where something happens all the time never comes to a heartbeat.
            try:
                is_valid = await is_still_valid(self._request)
            except DrivefeedError:
                return  # who asks again is told why
            if not is_valid:
                await _say(send, "event: signed-out\ndata: {}\n\n")
                return
            if view is None:
                await _say(send, ": still here\n\n")
                continue
            for name, about, told in self._tell(view):
                if sent.get((name, about)) != told:
                    sent[(name, about)] = told
                    await _say(send, f"event: {name}\ndata: {told}\n\n")


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _say(send: Send, words: str) -> None:
    await send({"type": "http.response.body", "body": words.encode(), "more_body": True})

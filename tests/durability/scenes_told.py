"""Scenes of being told: of changes, for longer, and no more; and of files' permissions."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from drivefeed.bootstrap import Surroundings, open_parts
from drivefeed.catalog.sources import all_connections, fetch_drive
from drivefeed.catalog.subscriptions import (
    all_subscriptions,
    forget_subscription,
    note_told,
    want_renewal,
)
from drivefeed.domain.model import Policy
from drivefeed.domain.subscription import SubscriptionState
from drivefeed.services.subscriptions import Subscribing
from drivefeed.sources.graph.subscriptions import GraphSubscriptions
from drivefeed.stages.permissions import ask_for_permissions
from durability.scenes import settings_here

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.bootstrap import Parts

NOBODY = "http://127.0.0.1:1"
LIFETIME_MS = 3_600_000


def told() -> None:
    """Everything that there is between asking to be told and asking for it no more."""
    asyncio.run(_told())


async def _told() -> None:
    async with open_parts(settings_here(), Surroundings.real()) as parts, _answering() as url:
        for one in await all_subscriptions(parts.catalog):
            if one.state is SubscriptionState.REFUSED:
                await forget_subscription(parts.catalog, one)
        await _permissions(parts)
        await _clerk(parts, url).tick()
        (one,) = await all_subscriptions(parts.catalog)
        assert one.state is SubscriptionState.LIVE
        await want_renewal(parts.catalog, one.subscription_id)
        await _clerk(parts, url).tick()
        await note_told(parts.catalog, [one.drive_id])
        await _clerk(parts, "").tick()
        assert not await all_subscriptions(parts.catalog)
        await _clerk(parts, NOBODY).tick()
        (one,) = await all_subscriptions(parts.catalog)
        assert one.state is SubscriptionState.REFUSED
        await forget_subscription(parts.catalog, one)


async def _permissions(parts: Parts) -> None:
    """Ask for the permissions of all files, as a plan does whose policy is about them."""
    (one,) = await all_connections(parts.catalog)
    wanting = replace(one, policy=Policy(own_permissions="exclude"))
    drive = await fetch_drive(parts.catalog, one.drive_id)
    await ask_for_permissions(parts.catalog, parts.source, drive, [wanting], only_dirty=False)


def _clerk(parts: Parts, url: str) -> Subscribing:
    source = GraphSubscriptions(parts.source)
    return Subscribing(parts.catalog, source, url=url, lifetime_ms=LIFETIME_MS, owner="clerk")


@asynccontextmanager
async def _answering() -> AsyncIterator[str]:
    """Answer handshakes, as the status page does."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        target = head.split(b" ")[1].decode()
        (token,) = parse_qs(urlsplit(target).query)["validationToken"]
        body = token.encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

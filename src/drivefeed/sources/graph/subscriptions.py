"""Subscriptions at Graph: asked for, prolonged, ended; what Graph says of them is read strictly.

Source: Microsoft's pages "subscription resource type" and "Receive change notifications through
webhooks".
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from drivefeed.domain.errors import NotFound, Transient
from drivefeed.domain.subscription import RESOURCE
from drivefeed.ports import Granted, SubscriptionWish
from drivefeed.sources.graph.budget import Lane
from drivefeed.sources.graph.errors import Scene
from drivefeed.sources.graph.links import full_link

if TYPE_CHECKING:
    from collections.abc import Callable

    from drivefeed.domain.remote import DriveRef
    from drivefeed.sources.graph.client import GraphClient
    from drivefeed.sources.graph.source import GraphSource

T = TypeVar("T")

_MOST_PAGES = 100
"""Of 100 subscriptions each, by Graph's own size."""


class _Answer(msgspec.Struct):
    id: str
    expirationDateTime: datetime  # noqa: N815 (Graph's name)
    notificationUrl: str = ""  # noqa: N815 (Graph's name)
    resource: str = ""


class _List(msgspec.Struct):
    value: list[_Answer]
    next_link: str = msgspec.field(default="", name="@odata.nextLink")


@dataclass(frozen=True, slots=True)
class GraphSubscriptions:
    """Asks Graph to tell of changes; see :class:`drivefeed.ports.ChangeNotifications`."""

    source: GraphSource

    async def subscribe(self, drive: DriveRef, wish: SubscriptionWish) -> Granted:
        """Ask to be told of a drive's changes."""
        client = await self.source.client(drive.account_id)
        builder, model = await asyncio.to_thread(_builder, client)
        asked = model(
            change_type="updated",
            notification_url=wish.url,
            lifecycle_notification_url=wish.lifecycle_url,
            resource=RESOURCE.format(drive.drive_id),
            expiration_date_time=_instant(wish.expires_at),
            client_state=wish.secret,
        )
        body = await _send(client, lambda: builder.to_post_request_information(asked), drive)
        return _granted(body)

    async def renew(self, drive: DriveRef, remote_id: str, *, expires_at: int) -> Granted:
        """Prolong a subscription, which answers a demand to authorize it again as well."""
        client = await self.source.client(drive.account_id)
        builder, model = await asyncio.to_thread(_builder, client)
        one = builder.by_subscription_id(remote_id)
        asked = model(expiration_date_time=_instant(expires_at))
        return _granted(await _send(client, lambda: one.to_patch_request_information(asked), drive))

    async def unsubscribe(self, drive: DriveRef, remote_id: str) -> None:
        """End a subscription; one that is gone is ended."""
        client = await self.source.client(drive.account_id)
        builder, _ = await asyncio.to_thread(_builder, client)
        one = builder.by_subscription_id(remote_id)
        try:
            await _send(client, one.to_delete_request_information, drive)
        except NotFound:
            return

    async def subscribed(self, drive: DriveRef, address: str) -> list[str]:
        """Return Graph's ids of this drive's subscriptions whose URL begins with an address."""
        client = await self.source.client(drive.account_id)
        base = client.account.base_url
        url = full_link("/subscriptions", base)
        found: list[str] = []
        for _ in range(_MOST_PAGES):
            body = await _send(client, partial(client.raw_request, url), drive)
            page = _read(body, _List)
            found += [
                one.id
                for one in page.value
                if one.notificationUrl.startswith(address)
                and _same(one.resource, RESOURCE.format(drive.drive_id))
            ]
            if not page.next_link:
                return found
            url = page.next_link
        raise Transient("Microsoft Graph names page after page of subscriptions.")


def _same(one: str, other: str) -> bool:
    """Whether two resources are one: Graph keeps or drops the first slash, and letters' case."""
    return one.strip("/").casefold() == other.strip("/").casefold()


def _builder(client: GraphClient) -> tuple[Any, Any]:
    """Return the SDK's builder and its model; what they need is imported at the first call."""
    from kiota_abstractions.api_client_builder import register_default_serializer
    from kiota_serialization_json.json_serialization_writer_factory import (
        JsonSerializationWriterFactory,
    )
    from msgraph.generated.models.subscription import Subscription
    from msgraph.generated.subscriptions.subscriptions_request_builder import (
        SubscriptionsRequestBuilder,
    )

    register_default_serializer(JsonSerializationWriterFactory)
    place = {"baseurl": client.account.base_url}
    return SubscriptionsRequestBuilder(client.adapter, place), Subscription


async def _send(client: GraphClient, build: Callable[[], Any], drive: DriveRef) -> bytes:
    return await client.read(build, Scene.SUBSCRIPTION, drive_id=drive.drive_id, lane=Lane.CHANGES)


def _granted(body: bytes) -> Granted:
    answer = _read(body, _Answer)
    ends = answer.expirationDateTime
    if ends.tzinfo is None:
        ends = ends.replace(tzinfo=UTC)
    return Granted(answer.id, round(ends.timestamp() * 1000))


def _read(body: bytes, shape: type[T]) -> T:
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Transient("Microsoft Graph's answer about a subscription is not one.") from None


def _instant(at: int) -> datetime:
    return datetime.fromtimestamp(at / 1000, tz=UTC)

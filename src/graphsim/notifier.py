"""What is sent to the endpoints of subscriptions: that there is something to ask delta for."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graphsim.clock import Clock, iso
from graphsim.courier import Courier, Delivery
from graphsim.directory import DirectoryDrive
from graphsim.errors import GraphError
from graphsim.faults import Asked

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from graphsim.drive import Drive
    from graphsim.items import Item

_LOOK_AGAIN = 0.25


@dataclass
class Subscription:
    """One subscription (times: epoch seconds)."""

    id: str
    app: str
    tenant: str
    drive: Drive
    resource: str
    notification_url: str
    expires: float
    client_state: str | None = None
    lifecycle_url: str | None = None
    needs_reauthorization: bool = False
    """It was asked to reauthorize, and is silent until it does."""
    is_waiting: bool = False
    """A notification is on its way."""

    def shown(self) -> dict[str, Any]:
        """Return the subscription as Graph shows it, without its client state."""
        return {
            "id": self.id,
            "resource": self.resource,
            "applicationId": self.app,
            "changeType": "updated",
            "clientState": None,
            "notificationUrl": self.notification_url,
            "lifecycleNotificationUrl": self.lifecycle_url,
            "expirationDateTime": iso(self.expires),
            "includeResourceData": None,
            "latestSupportedTlsVersion": "v1_2",
        }


class Notifier:
    """Knows the subscriptions and tells their endpoints of changes.

    Args:
        clock: Decides when subscriptions end.
        courier: Reaches the endpoints.
    """

    def __init__(self, clock: Clock, courier: Courier) -> None:
        self._clock = clock
        self.courier = courier
        self._known: dict[str, Subscription] = {}
        self._watched: set[str] = set()
        self._tasks: set[asyncio.Task[object]] = set()
        self.latency = 0.0
        """Real seconds between a change and its notification; changes meanwhile share one."""

    def alive(self) -> list[Subscription]:
        """Return the subscriptions that have not ended."""
        now = self._clock.now()
        self._known = {one.id: one for one in self._known.values() if one.expires > now}
        return list(self._known.values())

    def add(self, subscription: Subscription) -> None:
        """Tell a subscription of the changes of its drive from now on."""
        self._known[subscription.id] = subscription
        self._watch(subscription.drive)

    def kill(self, identifier: str) -> None:
        """End a subscription without a word, as was reported."""
        del self._known[identifier]

    async def require_reauthorization(self, identifier: str) -> bool:
        """Ask for a new authorization, and be silent until it comes; tell whether it arrived."""
        found = self._known[identifier]
        found.needs_reauthorization = True
        if found.lifecycle_url is None:
            return False
        event = {"lifecycleEvent": "reauthorizationRequired", "organizationId": found.tenant}
        return await self._send(found, "lifecycle", found.lifecycle_url, event)

    async def settle(self) -> None:
        """Wait until no notification is on its way."""
        await asyncio.sleep(0)  # changes are heard of in the loop's next round
        while waiting := [one for one in self._tasks if one.get_name() != "look"]:
            await asyncio.gather(*waiting, return_exceptions=True)

    async def close(self) -> None:
        """Send nothing more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _watch(self, drive: Drive) -> None:
        if drive.id in self._watched:
            return
        self._watched.add(drive.id)
        loop = asyncio.get_running_loop()

        def changed(_: Item) -> None:
            loop.call_soon_threadsafe(self._changed, drive)

        drive.tree.listeners.append(changed)
        if isinstance(drive, DirectoryDrive):
            self._begin(self._look(drive), "look")

    async def _look(self, drive: Drive) -> None:
        """Look at a real folder while somebody wants to hear of it."""
        while any(one.drive is drive for one in self.alive()):
            with contextlib.suppress(GraphError):  # the folder is missing for now
                await drive.refresh()
            await asyncio.sleep(_LOOK_AGAIN)

    def _changed(self, drive: Drive) -> None:
        for one in self.alive():
            if one.drive is drive and not one.is_waiting:
                one.is_waiting = True
                self._begin(self._notify(one), "notify")

    async def _notify(self, one: Subscription) -> None:
        await asyncio.sleep(self.latency)
        one.is_waiting = False
        if one.id in self._known and not one.needs_reauthorization:
            event = {"changeType": "updated", "resource": one.resource, "resourceData": None}
            await self._send(one, "change", one.notification_url, event)

    async def _send(self, one: Subscription, kind: str, url: str, event: dict[str, Any]) -> bool:
        common = {
            "subscriptionId": one.id,
            "clientState": one.client_state,
            "tenantId": one.tenant,
            "subscriptionExpirationDateTime": iso(one.expires),
        }
        asked = Asked(method="POST", url=url, op="notify", drive=one.drive.id, client=one.app)
        record = Delivery(subscription=one.id, kind=kind, url=url, time=self._clock.now())
        return await self.courier.deliver(record, {"value": [common | event]}, asked)

    def _begin(self, work: Coroutine[Any, Any, object], name: str) -> None:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

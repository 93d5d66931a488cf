"""Change notifications: subscriptions to roots of drives, and what is sent to their endpoints.

The rules are those of Microsoft's "subscription" page for driveItem: ``updated`` only, the root of
a drive only, at most 42,300 minutes, a handshake that must echo the token within ten seconds, and
notifications that say nothing but that there is something to ask delta for.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING
from urllib.parse import quote_plus

import msgspec

from graphsim.addressing import parse_address
from graphsim.clock import Clock, parse_iso
from graphsim.courier import Courier, is_loopback
from graphsim.errors import GraphError, invalid_request, not_found
from graphsim.notifier import Notifier, Subscription

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphsim.addressing import Address
    from graphsim.drive import Drive
    from graphsim.exchange import Exchange
    from graphsim.rights import Caller

    FindDrive = Callable[[Address, Caller], Drive]

LONGEST = 42_300 * 60.0
"""Seconds a subscription to a drive may last."""
SHORTEST = 45 * 60.0
"""Seconds to which shorter ones are raised."""
_LONGEST_STATE = 128


class _Wanted(msgspec.Struct, rename="camel"):
    """The body that makes a subscription, or changes one."""

    change_type: str = ""
    resource: str = ""
    notification_url: str = ""
    expiration_date_time: str = ""
    client_state: str | None = None
    lifecycle_notification_url: str | None = None


class Subscriptions(Notifier):
    """Answers ``/subscriptions`` and notifies of changes.

    Args:
        clock: Decides when subscriptions end.
        courier: Reaches the endpoints.
        find_drive: Returns the drive that an address names.
    """

    def __init__(self, clock: Clock, courier: Courier, find_drive: FindDrive) -> None:
        super().__init__(clock, courier)
        self._find_drive = find_drive
        self.grants: float | None = None
        """Seconds of every grant, whatever was asked for; shorter ones than Microsoft ever gives,
        so that a client renews before one's eyes."""

    async def answer(self, exchange: Exchange, rest: list[str], caller: Caller) -> None:
        """Answer a request to ``/subscriptions`` and below.

        Raises:
            GraphError: The refusal to send.
        """
        exchange.understood("subscriptions")
        exchange.refuse_if_told()
        own = {one.id: one for one in self.alive() if one.app == caller.app.client_id}
        context = {"@odata.context": f"{exchange.base}/v1.0/$metadata#subscriptions"}
        if not rest:
            if exchange.method == "POST":
                made = await self._create(exchange, caller)
                shown = made.shown() | {"clientState": made.client_state}
                await exchange.json(201, context | shown)
            else:
                await exchange.json(200, context | {"value": [one.shown() for one in own.values()]})
            return
        found = own.get(rest[0])
        if found is None:
            raise GraphError(404, "ResourceNotFound", "The object was not found.")
        exchange.understood("subscriptions", drive=found.drive.id)
        match exchange.method, [part.lower() for part in rest[1:]]:
            case "POST", ["reauthorize"]:
                found.needs_reauthorization = False
                await exchange.respond(204, exchange.standard_headers(), b"")
            case "PATCH", []:
                await self._change(exchange, found)
                await exchange.json(200, context | found.shown())
            case "DELETE", []:
                self.kill(found.id)
                await exchange.respond(204, exchange.standard_headers(), b"")
            case "GET", []:
                await exchange.json(200, context | found.shown())
            case _:
                raise not_found()

    async def _create(self, exchange: Exchange, caller: Caller) -> Subscription:
        wanted = await _wanted(exchange)
        if wanted.change_type != "updated":
            raise invalid_request("Drives support the changeType 'updated' only.")
        drive = self._drive_of(wanted.resource, caller)
        exchange.understood("subscriptions", drive=drive.id)
        caller.check_drive(drive)
        if len(wanted.client_state or "") > _LONGEST_STATE:
            raise invalid_request(f"clientState is longer than {_LONGEST_STATE} characters.")
        made = Subscription(
            id=str(uuid.uuid4()),  # noqa: TID251 - nothing is replayed by it
            app=caller.app.client_id, tenant=caller.tenant_id, drive=drive,
            resource=wanted.resource, notification_url=wanted.notification_url,
            expires=self._expiry(wanted.expiration_date_time), client_state=wanted.client_state,
            lifecycle_url=wanted.lifecycle_notification_url,
        )  # fmt: skip
        await self._handshake(made.id, made.notification_url)
        if made.lifecycle_url is not None:
            await self._handshake(made.id, made.lifecycle_url)
        self.add(made)
        return made

    async def _change(self, exchange: Exchange, found: Subscription) -> None:
        wanted = await _wanted(exchange)
        if wanted.expiration_date_time:
            found.expires = self._expiry(wanted.expiration_date_time)
        if wanted.notification_url:
            await self._handshake(found.id, wanted.notification_url)
            found.notification_url = wanted.notification_url
        found.needs_reauthorization = False

    def _drive_of(self, resource: str, caller: Caller) -> Drive:
        address = parse_address(f"/v1.0/{resource.strip('/')}")
        names_drive = address is not None and (address.drive or address.owner)
        if address is None or not names_drive or address.item != "root":
            raise invalid_request("Subscriptions are to the root of a drive: /drives/{id}/root.")
        if address.path or address.operation:
            raise invalid_request("Subscriptions are to the root of a drive, not to what is below.")
        return self._find_drive(address, caller)

    def _expiry(self, text: str) -> float:
        moment, now = parse_iso(text), self._clock.now()
        if moment is None or moment <= now:
            raise invalid_request("Subscription expiration must be a time in the future.")
        if moment > now + LONGEST:
            raise invalid_request(
                "Subscription expiration can only be 42300 minutes in the future."
            )
        return max(moment, now + SHORTEST) if self.grants is None else now + self.grants

    async def _handshake(self, identifier: str, url: str) -> None:
        if not is_loopback(url):
            raise invalid_request("graphsim notifies endpoints on this machine only.")
        token = (
            "Validation: Testing client application reachability for subscription "
            f"Request-Id: {identifier}, 100% + more & all"
        )
        query = f"{url}{'&' if '?' in url else '?'}validationToken={quote_plus(token)}"
        answer = await self.courier.validate(identifier, url, query)
        if answer.status == 0:
            message = "Subscription validation request timed out, or nobody answered."
            raise GraphError(400, "ValidationError", message)
        if not answer.echoes(token):
            message = (
                "Subscription validation request failed. The answer must be 200, text/plain, and "
                f"exactly the validationToken; it was {answer.status} {answer.media_type}."
            )
            raise GraphError(400, "ValidationError", message)


async def _wanted(exchange: Exchange) -> _Wanted:
    try:
        return msgspec.json.decode(await exchange.body(), type=_Wanted)
    except msgspec.MsgspecError as error:
        raise invalid_request(f"The body is no subscription ({error}).") from error

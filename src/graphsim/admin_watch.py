"""The admin port's view of what was asked: the request log, assertions over it, and accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.responses import Response
from starlette.routing import Route

from graphsim.admin_answers import answered, safe
from graphsim.fault_scripts import Limits

if TYPE_CHECKING:
    from starlette.requests import Request

    from graphsim.app import Application
    from graphsim.subscriptions import Subscriptions


class Telling(msgspec.Struct, forbid_unknown_fields=True):
    """What of subscriptions is changed."""

    grants: float | msgspec.UnsetType | None = msgspec.UNSET
    latency: float | msgspec.UnsetType = msgspec.UNSET

    def apply(self, own: Subscriptions) -> None:
        """Change what is stated."""
        for name in self.__struct_fields__:
            if (value := getattr(self, name)) is not msgspec.UNSET:
                setattr(own, name, value)


class WatchAdmin:
    """Answers for the log and the allowance.

    Args:
        app: The running graphsim.
    """

    def __init__(self, app: Application) -> None:
        self._app = app

    def routes(self) -> list[Route]:
        """Return the routes."""
        ends = [
            ("/log", ["GET"], self.read_log),
            ("/log", ["DELETE"], self.clear_log),
            ("/counters", ["GET"], self.counters),
            ("/assertions", ["GET"], self.assertions),
            ("/subscriptions", ["GET"], self.subscriptions),
            ("/subscriptions", ["PATCH"], self.set_subscriptions),
            ("/subscriptions/{id}", ["DELETE"], self.kill_subscription),
            ("/subscriptions/{id}/reauthorization", ["POST"], self.require_reauthorization),
            ("/allowance", ["GET"], self.allowance),
            ("/allowance", ["PATCH"], self.set_allowance),
        ]
        return [Route(path, safe(end), methods=how) for path, how, end in ends]

    async def read_log(self, request: Request) -> Response:
        """Take ``since``, ``op`` and ``item`` as filters."""
        asked = request.query_params
        since = int(asked.get("since", "0"))
        log = self._app.log
        entries = log.entries(since=since, op=asked.get("op"), item=asked.get("item"))
        return answered({"last": log.last, "count": len(entries), "entries": entries})

    async def clear_log(self, _: Request) -> Response:
        """Forget all requests."""
        self._app.log.clear()
        return Response(status_code=204)

    async def counters(self, _: Request) -> Response:
        """Answer with totals by operation."""
        log = self._app.log
        return answered(
            {
                "last": log.last,
                "max_in_flight": log.max_in_flight,
                "authorization_on_download_host": len(log.leaked_authorization()),
                "during_penalty": len(log.during_penalty()),
                "resource_units": log.units(),
                "operations": log.totals(),
            }
        )

    async def assertions(self, request: Request) -> Response:
        """Take ``since``, ``grace``, ``max_in_flight`` and ``max_units``; tell what was broken."""
        asked, log = request.query_params, self._app.log
        since = int(asked.get("since", "0"))
        leaks = [one for one in log.leaked_authorization() if one.number > since]
        early = log.during_penalty(grace=float(asked.get("grace", "0")), since=since)
        crowded = (
            log.crowded(int(asked["max_in_flight"]), since=since)
            if "max_in_flight" in asked
            else []
        )
        units = log.units(since=since)
        dear = "max_units" in asked and units > int(asked["max_units"])
        return answered(
            {
                "ok": not (leaks or early or crowded or dear),
                "authorization_on_download_host": leaks,
                "during_penalty": early,
                "over_max_in_flight": crowded,
                "resource_units": units,
                "over_max_units": dear,
            }
        )

    async def allowance(self, _: Request) -> Response:
        """Answer with the limits and the accounts."""
        allowance = self._app.allowance
        limits = {name: getattr(allowance, name) for name in Limits.__struct_fields__}
        accounts = [
            {
                "app": one.app, "tenant": one.tenant, "units": one.units, "refused": one.refused,
                "minute": one.minute.used, "day": one.day.used,
            }
            for one in allowance.accounts.values()
        ]  # fmt: skip
        return answered({**limits, "accounts": accounts})

    async def set_allowance(self, request: Request) -> Response:
        """Take ``per_minute``, ``per_day``, ``scale`` and ``extension``."""
        msgspec.json.decode(await request.body(), type=Limits).apply(self._app.allowance)
        return await self.allowance(request)

    async def subscriptions(self, _: Request) -> Response:
        """Answer with the subscriptions and every attempt to reach their endpoints."""
        own = self._app.graph.subscriptions
        shown = [
            one.shown()
            | {
                "drive": one.drive.id,
                "clientState": one.client_state,
                "needsReauthorization": one.needs_reauthorization,
            }
            for one in own.alive()
        ]
        return answered({"subscriptions": shown, "deliveries": own.courier.deliveries})

    async def set_subscriptions(self, request: Request) -> Response:
        """Take ``grants`` (seconds of every grant; null for what is asked) and ``latency``."""
        msgspec.json.decode(await request.body(), type=Telling).apply(self._app.graph.subscriptions)
        return await self.subscriptions(request)

    async def kill_subscription(self, request: Request) -> Response:
        """End a subscription without a word to its owner."""
        self._app.graph.subscriptions.kill(request.path_params["id"])
        return Response(status_code=204)

    async def require_reauthorization(self, request: Request) -> Response:
        """Send ``reauthorizationRequired``."""
        own = self._app.graph.subscriptions
        arrived = await own.require_reauthorization(request.path_params["id"])
        return answered({"arrived": arrived})

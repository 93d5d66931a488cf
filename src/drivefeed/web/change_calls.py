"""Where Microsoft says that something changed: a wake-up, of which nothing else is believed.

Source: Microsoft's pages "Receive change notifications through webhooks" and "Lifecycle
notifications". Every call is answered before anything is written.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from drivefeed.domain.subscription import LIFECYCLE, PATH
from drivefeed.web.problems import Problem, bad_request, not_found
from drivefeed.web.site import site_of

if TYPE_CHECKING:
    from drivefeed.web.bell import Bell

_BODY_SECONDS: Final = 10.0
_MOST_BYTES: Final = 512 * 1024
_LONGEST_TOKEN: Final = 4_096
_LONGEST_ID: Final = 64
_RENEW: Final = "reauthorizationRequired"

router = APIRouter(include_in_schema=False)


@router.post(PATH + "{subscription_id}")
async def changed(subscription_id: str, request: Request) -> Response:
    """Take word of changes, or answer the handshake of a new subscription."""
    bell = _bell_of(request, subscription_id)
    if (token := request.query_params.get("validationToken")) is not None:
        return await _handshake(bell, subscription_id, token)
    calls = await _calls(request)
    if not await bell.hear(subscription_id, [call.get("clientState") for call in calls]):
        raise _forged()
    return Response(status_code=202)


@router.post(PATH + "{subscription_id}" + LIFECYCLE)
async def fated(subscription_id: str, request: Request) -> Response:
    """Take word of the subscription's own fate, or answer the handshake."""
    bell = _bell_of(request, subscription_id)
    if (token := request.query_params.get("validationToken")) is not None:
        return await _handshake(bell, subscription_id, token)
    calls = await _calls(request)
    if not await bell.hear(subscription_id, [call.get("clientState") for call in calls]):
        raise _forged()
    if any(call.get("lifecycleEvent") in _WANTS_WORK for call in calls):
        bell.want_renewal(subscription_id)
    return Response(status_code=202)


_WANTS_WORK: Final = frozenset({_RENEW, "subscriptionRemoved"})
"""Renewing one that was removed finds it gone, and asks anew."""


def _bell_of(request: Request, subscription_id: str) -> Bell:
    bell = site_of(request).bell
    if bell is None or len(subscription_id) > _LONGEST_ID:
        raise not_found()
    return bell


async def _handshake(bell: Bell, subscription_id: str, token: str) -> Response:
    """Give the token back as plain text, as it is after the decoding of the URL."""
    if not await bell.knows(subscription_id) or len(token) > _LONGEST_TOKEN:
        raise not_found()
    return PlainTextResponse(token)


def _forged() -> Problem:
    return Problem(
        403,
        "forged",
        "The call does not show the word of its subscription.",
        remedy="Nothing is lost: drives are asked for changes anyway.",
    )


async def _calls(request: Request) -> list[dict[str, Any]]:
    whole = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for piece in request.stream():
                whole += piece
                if len(whole) > _MOST_BYTES:
                    raise bad_request(f"A call has at most {_MOST_BYTES} bytes.")
    except TimeoutError:
        raise bad_request("The call did not arrive.") from None
    try:
        calls = json.loads(bytes(whole))["value"]
    except (ValueError, KeyError, TypeError, RecursionError):
        calls = None
    if not isinstance(calls, list) or not all(isinstance(one, dict) for one in calls) or not calls:
        raise bad_request('A call is {"value": [{"clientState": "…", …}]}.')
    return calls

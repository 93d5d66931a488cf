"""Where Microsoft says that something changed: a wake-up, of which nothing else is believed.

Source: Microsoft's pages "Receive change notifications through webhooks" and "Lifecycle
notifications". Every call is answered before anything is written.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from drivefeed.domain.subscription import LIFECYCLE, PATH
from drivefeed.web.calls import read_call
from drivefeed.web.problems import Problem, bad_request, not_found
from drivefeed.web.site import site_of

if TYPE_CHECKING:
    from drivefeed.web.bell import Bell

_MOST_BYTES: Final = 512 * 1024
_LONGEST_TOKEN: Final = 4_096
_LONGEST_ID: Final = 64
_WANTS_WORK: Final = frozenset({"reauthorizationRequired", "subscriptionRemoved"})
"""Renewing one that was removed finds it gone, and asks anew."""

router = APIRouter(include_in_schema=False)


@router.post(PATH + "{subscription_id}")
async def changed(subscription_id: str, request: Request) -> Response:
    """Take word of changes, or answer the handshake of a new subscription."""
    answer, _ = await _answered(subscription_id, request)
    return answer


@router.post(PATH + "{subscription_id}" + LIFECYCLE)
async def fated(subscription_id: str, request: Request) -> Response:
    """Take word of the subscription's own fate, or answer the handshake."""
    answer, calls = await _answered(subscription_id, request)
    if any(call.get("lifecycleEvent") in _WANTS_WORK for call in calls):
        _bell_of(request, subscription_id).want_renewal(subscription_id)
    return answer


async def _answered(
    subscription_id: str, request: Request
) -> tuple[Response, list[dict[str, Any]]]:
    """Return the answer, and the calls that were heard: none where it was a handshake."""
    bell = _bell_of(request, subscription_id)
    if (token := request.query_params.get("validationToken")) is not None:
        return await _handshake(bell, subscription_id, token), []
    calls = await _calls(request)
    if not await bell.hear(subscription_id, [call.get("clientState") for call in calls]):
        raise _forged()
    return Response(status_code=202), calls


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
    whole = await read_call(request, _MOST_BYTES)
    try:
        calls = json.loads(whole)["value"]
    except (ValueError, KeyError, TypeError, RecursionError):
        calls = None
    if not isinstance(calls, list) or not all(isinstance(one, dict) for one in calls) or not calls:
        raise bad_request('A call is {"value": [{"clientState": "…", …}]}.')
    return calls

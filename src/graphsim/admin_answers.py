"""How the admin port answers: JSON, and sentences for what it does not understand."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from graphsim.errors import GraphError

Answer = Callable[[Request], Awaitable[Response]]


class Refused(Exception):
    """A request the admin port does not understand; the sentence goes back as 400."""


def answered(content: Any, status: int = 200) -> Response:
    """Return a JSON answer."""
    return Response(msgspec.json.encode(content), status, media_type="application/json")


def safe(end: Answer) -> Answer:
    """Turn what an answer raises about its request into a 400 with a sentence."""

    async def answer(request: Request) -> Response:
        try:
            return await end(request)
        except (Refused, GraphError, KeyError, ValueError, msgspec.MsgspecError) as error:
            return answered({"error": str(error)}, 400)

    return answer

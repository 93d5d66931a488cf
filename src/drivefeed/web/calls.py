"""Bodies of calls from outside, by whoever may send them: small, and in time."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from drivefeed.web.problems import bad_request

if TYPE_CHECKING:
    from starlette.requests import Request

_BODY_SECONDS: Final = 10.0


async def read_call(request: Request, most: int) -> bytes:
    """Read a body of at most ``most`` bytes.

    Raises:
        Problem: it is larger, or did not arrive.
    """
    whole = bytearray()
    try:
        async with asyncio.timeout(_BODY_SECONDS):
            async for piece in request.stream():
                whole += piece
                if len(whole) > most:
                    raise bad_request(f"A call has at most {most} bytes.")
    except TimeoutError:
        raise bad_request("The call did not arrive.") from None
    return bytes(whole)

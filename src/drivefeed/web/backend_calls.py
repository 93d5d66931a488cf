"""Where backends say that a job ended. It only makes a poll due now; what it came to is asked."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from fastapi import APIRouter, Request
from starlette.responses import Response

from drivefeed.backends.signing import SIGNATURE_HEADER, Credential, Gate
from drivefeed.catalog.calls import poll_now
from drivefeed.web.calls import read_call
from drivefeed.web.problems import Problem, bad_request
from drivefeed.web.site import site_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from drivefeed.ports import Clock

_MOST_BYTES: Final = 4_096
_LONGEST_KEY: Final = 80
_PER_SECOND: Final = 50.0
_BURST: Final = 200.0

router = APIRouter(include_in_schema=False)


@dataclass
class Caller:
    """One backend that may call, and how often."""

    gate: Gate
    now: Callable[[], float] = time.monotonic
    _left: float = _BURST
    _at: float = field(default=0.0)

    def may_call(self) -> bool:
        """Take one call out of the allowance; False where it is used up."""
        now = self.now()
        self._left = min(_BURST, self._left + (now - self._at) * _PER_SECOND)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


def callers_of(credentials: Mapping[str, Credential], clock: Clock) -> dict[str, Caller]:
    """Return who may call, by the names of the backends."""
    return {name: Caller(Gate(one, clock)) for name, one in credentials.items()}


@router.post("/v1/backends/{name}/calls", status_code=202)
async def called(name: str, request: Request) -> Response:
    """Take a call; the answer says nothing of whether there is such a job."""
    site = site_of(request)
    body = await read_call(request, _MOST_BYTES)
    caller = site.callers.get(name)
    target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    # A name that is unknown is refused as a wrong signature is.
    refused = caller is None or caller.gate.refusal(
        authorization=request.headers.get("authorization", ""),
        signed=request.headers.get(SIGNATURE_HEADER, ""),
        method=request.method,
        target=target,
        body=body,
    )
    if caller is None or refused:
        raise Problem(
            401,
            "unauthorized",
            "The call shows no secret of a backend.",
            remedy="Sign it as requests to the backend are signed; docs/backend-contract.md.",
        )
    if not caller.may_call():
        raise Problem(
            429,
            "too_many",
            "This backend calls too often.",
            remedy="Nothing is lost: jobs are asked for anyway.",
            headers={"Retry-After": "1"},
        )
    await poll_now(site.catalog, name, _key(body))
    return Response(status_code=202)


def _key(body: bytes) -> str:
    try:
        key = json.loads(body)["key"]
    except (ValueError, KeyError, TypeError):
        key = None
    if not isinstance(key, str) or not 0 < len(key) <= _LONGEST_KEY:
        raise bad_request('A call is {"key": "…"}, the key of the submission.')
    return key

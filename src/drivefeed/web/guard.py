"""Stands before every answer: the names we answer to, and the headers that keep browsers careful.

A page on somebody else's site can have its name point to 127.0.0.1 and then read what a local
server answers (DNS rebinding). So requests under a name that is not ours are refused; addresses in
digits cannot be rebound.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse

from drivefeed.web.problems import PROBLEM_TYPE, Problem

if TYPE_CHECKING:
    from collections.abc import Collection

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}

_STATIC: Final = "/static/"
"""What is the same for everybody may be kept, and is asked for again whether it is the same."""


class Guard:
    """ASGI middleware around the whole application.

    Args:
        names: host names we answer to, besides localhost and addresses in digits.
    """

    def __init__(self, app: ASGIApp, *, names: Collection[str]) -> None:
        self._app = app
        self._names = {name.lower() for name in names} | {"localhost"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                is_ours = scope["path"].startswith(_STATIC)
                headers["Cache-Control"] = "no-cache" if is_ours else "no-store"
            await send(message)

        host = Headers(scope=scope).get("host", "")
        if not self._answers_to(host):
            await _refusal(host)(scope, receive, send_guarded)
            return
        await self._app(scope, receive, send_guarded)

    def _answers_to(self, host: str) -> bool:
        name = _without_port(host).lower().rstrip(".")
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _refusal(host: str) -> JSONResponse:
    problem = Problem(
        421,
        "unknown_host",
        "This server does not answer under that name.",
        detail=f"The request asked for '{host[:100]}'.",
        remedy="Use its address in digits, or set web_url to the address under which people "
        "reach it.",
    )
    return JSONResponse(problem.as_dict(), problem.status, media_type=PROBLEM_TYPE)

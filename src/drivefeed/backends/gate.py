"""The gate before a served backend: reads a bounded body, then lets in who knows the secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from drivefeed.backends.contract import MOST_REQUEST_BYTES, VERSION, Code
from drivefeed.backends.serving import Refusal, refused
from drivefeed.backends.signing import SIGNATURE_HEADER, Gate

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from drivefeed.backends.signing import Credential
    from drivefeed.ports import Clock


class Gated:
    """An application that answers only requests with the secret."""

    def __init__(self, app: ASGIApp, credential: Credential, clock: Clock) -> None:
        self._app = app
        self._gate = Gate(credential, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body, look at the secret, and pass both on."""
        if scope["type"] != "http":
            return
        body = await _whole(receive)
        if body is None:
            words = f"A request has at most {MOST_REQUEST_BYTES >> 10} KiB."
            await refused(Refusal(Code.TOO_LARGE, words))(scope, receive, send)
            return
        headers = {
            name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
        }
        refusal = self._gate.refusal(
            authorization=headers.get("authorization", ""),
            signed=headers.get(SIGNATURE_HEADER.lower(), ""),
            method=scope["method"],
            target=_target(scope),
            body=body,
        )
        if refusal:
            await refused(Refusal(Code.UNAUTHORIZED, refusal))(scope, receive, send)
            return
        unread = [body]

        async def again() -> Message:
            if unread:
                return {"type": "http.request", "body": unread.pop(), "more_body": False}
            return await receive()

        await self._app(scope, again, send)


async def _whole(receive: Receive) -> bytes | None:
    found = bytearray()
    more = True
    while more:
        message = await receive()
        found += message.get("body", b"")
        more = message.get("more_body", False)
        if len(found) > MOST_REQUEST_BYTES:
            return None
    return bytes(found)


def _target(scope: Scope) -> str:
    """Return path and query as they were sent, from the version on."""
    path = scope.get("raw_path") or scope["path"].encode()
    target = path.decode("latin-1")
    before, found, after = target.partition(f"/{VERSION}/")
    del before
    if found:
        target = found + after
    query = scope["query_string"].decode("latin-1")
    return f"{target}?{query}" if query else target

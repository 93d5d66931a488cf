"""``$batch``: up to twenty requests in one, each answered and charged by itself."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import msgspec

from graphsim.errors import invalid_request

if TYPE_CHECKING:
    from graphsim.exchange import Exchange, Scope
    from graphsim.wire import Message, Receive, Send

_MOST = 20


class _Member(msgspec.Struct, rename="camel"):
    id: str
    method: str
    url: str
    headers: dict[str, str] = {}
    body: msgspec.Raw = msgspec.Raw(b"")
    depends_on: list[str] = []


class _Batch(msgspec.Struct):
    requests: list[_Member]


class Batches:
    """Takes batches apart.

    Args:
        app: The ASGI application that answers each member.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def answer(self, exchange: Exchange, prefix: str) -> None:
        """Answer a batch; its members' answers come in the reverse of their order.

        Raises:
            GraphError: 400 for a batch that is too large, or whose ids or order make no sense.
        """
        exchange.understood("batch")
        exchange.refuse_if_told()
        try:
            members = msgspec.json.decode(await exchange.body(most=4 << 20), type=_Batch).requests
        except msgspec.MsgspecError as error:
            raise invalid_request(f"The body is no batch ({error}).") from error
        _check(members)
        statuses: dict[str, int] = {}
        answers: list[dict[str, Any]] = []
        for member in members:
            failed = [one for one in member.depends_on if statuses[one] >= 400]  # noqa: PLR2004
            answer = _dependent(member) if failed else await self._one(exchange, prefix, member)
            statuses[member.id] = answer["status"]
            answers.append(answer)
        await exchange.json(200, {"responses": answers[::-1]})

    async def _one(self, exchange: Exchange, prefix: str, member: _Member) -> dict[str, Any]:
        path, _, query = f"{prefix}/{member.url.lstrip('/')}".partition("?")
        headers = {
            "host": exchange.host,
            "authorization": exchange.headers.get("authorization", ""),
        }
        headers |= {name.lower(): value for name, value in member.headers.items()}
        scope: Scope = {
            "type": "http", "method": member.method.upper(), "scheme": exchange.scheme,
            "raw_path": path.encode(), "path": path, "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": None, "graphsim.batch": exchange.entry.number,
        }  # fmt: skip
        return await _called(self._app, scope, member)


async def _called(app: Any, scope: Scope, member: _Member) -> dict[str, Any]:
    start: Message = {"status": 502, "headers": []}
    body = bytearray()

    async def receive() -> Message:
        return {"type": "http.request", "body": bytes(member.body), "more_body": False}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            start.update(message)
        body.extend(message.get("body", b""))

    await _asgi(app, scope, receive, send)
    headers = {name.decode().title(): value.decode("latin-1") for name, value in start["headers"]}
    answer: dict[str, Any] = {"id": member.id, "status": start["status"], "headers": headers}
    if body:
        is_json = "json" in headers.get("Content-Type", "")
        answer["body"] = msgspec.Raw(body) if is_json else base64.b64encode(body).decode()
    return answer


async def _asgi(app: Any, scope: Scope, receive: Receive, send: Send) -> None:
    await app(scope, receive, send)


def _dependent(member: _Member) -> dict[str, Any]:
    message = "A request that this one depends on has failed."
    error = {"error": {"code": "FailedDependency", "message": message}}
    return {"id": member.id, "status": 424, "headers": {}, "body": error}


def _check(members: list[_Member]) -> None:
    if not 0 < len(members) <= _MOST:
        raise invalid_request(f"A batch has 1 to {_MOST} requests, not {len(members)}.")
    known: set[str] = set()
    for member in members:
        if member.id in known:
            raise invalid_request(f"The request id {member.id} is in the batch twice.")
        if not known.issuperset(member.depends_on):
            raise invalid_request(f"The request {member.id} depends on one that does not precede.")
        if "://" in member.url.partition("?")[0]:
            raise invalid_request("The URLs of a batch are relative.")
        known.add(member.id)

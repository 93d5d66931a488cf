"""A server that says exactly what a test wants said, for answers graphsim would never give."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from azure.core.credentials import AccessToken

from drivefeed.domain.remote import DriveRef
from drivefeed.sources.graph import ClientSecret, GraphAccount, GraphSource
from integration.graph_source.kit import HurriedClock, PlainIds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

DRIVE = DriveRef("sim", "b!drive")


@dataclass
class Asked:
    target: str
    headers: dict[str, str]


Answer = tuple[int, dict[str, str], bytes]


class Server:
    """Answers each request by ``script``; records all of them."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.script: Callable[[Asked], Answer] = lambda _: (404, {}, b"")
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def other_url(self) -> str:
        return f"http://localhost:{self.port}"

    def asked_for(self, part: str) -> list[Asked]:
        return [asked for asked in self.asked if part in asked.target]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            headers = {k.lower(): v for k, v in (line.split(": ", 1) for line in lines)}
            asked = Asked(first.split(" ")[1], headers)
            self.asked.append(asked)
            status, fields, body = self.script(asked)
            # Taken literally where given, so that it can be a lie.
            fields = {"Content-Length": str(len(body)), "Connection": "close"} | fields
            text = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value)
            writer.write(f"HTTP/1.1 {status} Said\r\n{text}\r\n".encode("latin-1") + body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def scripted() -> AsyncIterator[Server]:
    server = Server()
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    async with listening:
        yield server


class FixedCredential:
    """A sign-in that needs no server; counts renewals and keeps the claims."""

    def __init__(self) -> None:
        self.generation = 0
        self.claims: list[str | None] = []

    async def get_token(self, *_: str, **__: Any) -> AccessToken:
        return AccessToken(f"token-{self.generation}", int(time.time()) + 3600)

    async def renew(self, generation: int, claims: str | None) -> None:
        if generation == self.generation:
            self.generation += 1
            self.claims.append(claims)

    async def close(self) -> None:
        pass


@asynccontextmanager
async def reading(
    server: Server, credential: FixedCredential | None = None, clock: HurriedClock | None = None
) -> AsyncIterator[GraphSource]:
    account = GraphAccount(
        "sim", "sim", "tenant", "app", ClientSecret("secret"), graph_url=server.url
    )
    fixed = credential or FixedCredential()
    source = GraphSource(
        {"sim": account},
        clock=clock or HurriedClock(),
        ids=PlainIds(),
        credential=lambda _: fixed,
        allowance=1_000_000,
    )
    try:
        yield source
    finally:
        await source.aclose()


def json_answer(document: Any, status: int = 200, **headers: str) -> Answer:
    fields = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, {"Content-Type": "application/json"} | fields, json.dumps(document).encode()


def refusal(status: int, code: str, **headers: str) -> Answer:
    return json_answer({"error": {"code": code, "message": "No"}}, status, **headers)

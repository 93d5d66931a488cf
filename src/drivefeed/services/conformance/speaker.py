"""Speaks the contract without any of the client's forgiveness, and says things that are wrong."""

from __future__ import annotations

import asyncio
import json
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx

from drivefeed.backends.contract import MOST_ANSWER_BYTES
from drivefeed.backends.signing import SIGNATURE_HEADER, Credential, signature
from drivefeed.services.conformance.finding import Fault

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.ports import Clock, Ids

_TIMEOUT: Final = 30.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back; ``body`` is None where it is no JSON object."""

    status: int
    body: dict[str, Any] | None

    @property
    def code(self) -> str:
        """The code of a problem, or nothing."""
        return str((self.body or {}).get("code", ""))

    @property
    def is_success(self) -> bool:
        """Whether the status is one of success."""
        return 200 <= self.status < 300  # noqa: PLR2004 - the class of successes

    @property
    def is_refusal(self) -> bool:
        """Whether the status says that the request was wrong."""
        return 400 <= self.status < 500  # noqa: PLR2004 - the class of refusals

    def __str__(self) -> str:
        said = json.dumps(self.body, ensure_ascii=False)[:200] if self.body else ""
        return f"{self.status} {said}".strip()


class Speaker:
    """Sends requests, each with a signature of its own unless told otherwise."""

    def __init__(
        self,
        url: str,
        credential: Credential | None,
        client: httpx.AsyncClient,
        *,
        clock: Clock,
        ids: Ids,
    ) -> None:
        self.url = url.rstrip("/")
        self.credential = credential
        self.ids = ids
        self._client = client
        self._clock = clock

    @property
    def is_signed(self) -> bool:
        """Whether requests are signed."""
        return self.credential is not None and self.credential.way == "hmac"

    def headers(
        self, method: str, target: str, body: bytes, *, secret: str | None = None, age: int = 0
    ) -> dict[str, str]:
        """Return the headers of one request; with another secret, or as of ``age`` seconds ago."""
        given = self.credential
        if given is None:
            return {}
        secret = given.secret if secret is None else secret
        if given.way == "bearer":
            return {"Authorization": f"Bearer {secret}"}
        at = self._clock.now() // 1000 - age
        nonce = self.ids.new()
        written = signature(secret, at=at, nonce=nonce, method=method, target=target, body=body)
        return {SIGNATURE_HEADER: written}

    async def ask(
        self,
        method: str,
        target: str,
        shape: object = None,
        *,
        raw: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        seconds: float = _TIMEOUT,
    ) -> Answer:
        """Send a request and return the answer.

        Raises:
            Fault: none came in time, or more than the contract allows.
        """
        body = raw if raw is not None else _bytes(shape)
        sent = dict(self.headers(method, target, body) if headers is None else headers)
        if body:
            sent["Content-Type"] = "application/json"
        try:
            async with (
                asyncio.timeout(seconds),
                self._client.stream(method, self.url + target, content=body, headers=sent) as found,
            ):
                whole = bytearray()
                async for piece in found.aiter_bytes():
                    whole += piece
                    if len(whole) > MOST_ANSWER_BYTES:
                        raise Fault(
                            f"{method} {_path(target)} answered with more than "
                            f"{MOST_ANSWER_BYTES >> 10} KiB.",
                            "Answer with the members of the contract only.",
                        )
                return Answer(found.status_code, _object(whole))
        except TimeoutError:
            raise Fault(
                f"{method} {_path(target)} was not answered within {seconds:g} seconds.",
                "Answer at once and work in the background; drivefeed asks how a job stands.",
            ) from None
        except httpx.HTTPError as error:
            raise Fault(
                f"{method} {_path(target)} was not answered: {str(error) or type(error).__name__}.",
                "Look at the backend's log; the connection must stay until the answer is sent.",
            ) from error

    async def ask_and_leave(self, method: str, target: str, shape: object) -> None:
        """Send a request and cut the connection before the answer can come."""
        parts = urlsplit(self.url)
        body = _bytes(shape)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        tls = (
            await asyncio.to_thread(ssl.create_default_context) if parts.scheme == "https" else None
        )
        head = [f"{method} {parts.path}{target} HTTP/1.1", f"Host: {parts.netloc}"]
        head += [f"{name}: {value}" for name, value in self.headers(method, target, body).items()]
        head += ["Content-Type: application/json", f"Content-Length: {len(body)}", "", ""]
        try:
            _, writer = await asyncio.open_connection(parts.hostname, port, ssl=tls)
            writer.write("\r\n".join(head).encode() + body)
            await writer.drain()
            writer.close()
        except OSError:
            # Whether it arrived is what nobody can know; the check goes on from here.
            return


def _bytes(shape: object) -> bytes:
    return b"" if shape is None else json.dumps(shape, ensure_ascii=False).encode()


def _object(whole: bytearray) -> dict[str, Any] | None:
    try:
        found = json.loads(whole)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _path(target: str) -> str:
    return target.partition("?")[0]

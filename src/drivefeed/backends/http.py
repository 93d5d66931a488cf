"""Any team's ingestion backend behind the published contract, as an implementation of the port.

See ``docs/backend-contract.md``. Each call is one request, within one deadline; nothing is sent
again by itself, since reminders and the key see to that.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote

import httpx
from pydantic import BaseModel, ValidationError

from drivefeed import __version__
from drivefeed.backends.answers import Answers
from drivefeed.backends.breaker import Breaker
from drivefeed.backends.contract import (
    MOST_ANSWER_BYTES,
    VERSION,
    CancelShape,
    Content,
    HealthShape,
    JobShape,
    JobState,
    LiveShape,
    PlaceShape,
    status_of,
    submission_shape,
)
from drivefeed.domain.errors import DrivefeedError, NeedsAttention, NotFound
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import redact
from drivefeed.ports import BackendState, BackendStatus

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from drivefeed.backends.place import Place
    from drivefeed.outbound import Outbound
    from drivefeed.ports import Clock, Ids, Submission

    Address = Callable[[str], Awaitable[str | None]]

_CONNECT_SECONDS: Final = 5.0
_NOBODY_ASKS_MS: Final = 60_000
"""Longer than a breaker is open, so that files that wait have asked meanwhile."""
_WHO: Final = {"drivefeed": "drivefeed keeps", "backend": "the backend keeps"}
_Shape = TypeVar("_Shape", bound=BaseModel)


class HttpBackend:
    """Speaks the contract, version 1.

    Args:
        address: gives a fresh URL for a key of the object store, or None where it has no URLs.
    """

    def __init__(
        self, place: Place, *, address: Address, outbound: Outbound, clock: Clock, ids: Ids
    ) -> None:
        self._place = place
        self._address = address
        self._outbound = outbound
        self._clock = clock
        self._ids = ids
        self._breaker = Breaker(clock, ids, place.name)
        self._where = f"The backend '{place.name}'"
        self._answers = Answers(self._where, self._breaker)
        self._client: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()

    @property
    def trouble(self) -> str:
        """What it was last seen to suffer from; empty while it is considered well."""
        return self._breaker.words

    async def look_again(self) -> None:
        """Ask one that is down and that nobody else asks, so that it is seen to be well again.

        While files wait for it, their own requests are what shows.
        """
        if self._breaker.words and self._breaker.idle_ms >= _NOBODY_ASKS_MS:
            with suppress(DrivefeedError):
                await self.check()

    async def submit(self, submission: Submission) -> str:
        """Submit; the same key gives the same job."""
        content = await self._content(submission)
        shape = submission_shape(submission, content, self._place.call_url)
        body = shape.model_dump_json(exclude_none=True).encode()
        return (await self._ask(JobShape, "POST", f"/{VERSION}/jobs", body)).job_id

    async def status(self, job_id: str) -> BackendStatus:
        """Ask once how a job stands; an unknown id gives ``UNKNOWN``."""
        try:
            job = await self._ask(JobShape, "GET", f"/{VERSION}/jobs/{_part(job_id)}")
        except NotFound:
            return BackendStatus(BackendState.UNKNOWN)
        if job.state is JobState.DONE and job.pages is None:
            raise self._breaker.down(
                f"{self._where} says that job {job_id} is done, and not how many pages it has, "
                "which are charged. 'drivefeed backend check' tells more."
            )
        return status_of(job)

    async def find(self, key: str) -> str | None:
        """Return the job id of an idempotency key, or None."""
        try:
            return (await self._ask(JobShape, "GET", f"/{VERSION}/jobs?key={_part(key)}")).job_id
        except NotFound:
            return None

    async def cancel(self, job_id: str) -> bool:
        """Try to cancel; a job that is unknown will not finish."""
        target = f"/{VERSION}/jobs/{_part(job_id)}/cancel"
        try:
            return (await self._ask(CancelShape, "POST", target)).cancelled
        except NotFound:
            return True

    async def remove(self, *, document_id: str, import_id: str, round_: int) -> None:
        """Remove everything of one round of an import; fine if there is nothing."""
        await self._do("DELETE", _round(document_id, import_id, round_))

    async def set_live(self, *, document_id: str, import_id: str, round_: int, live: bool) -> None:
        """Show or hide one round of an import."""
        target = f"{_round(document_id, import_id, round_)}/live"
        await self._do("PUT", target, LiveShape(live=live).model_dump_json().encode())

    async def set_folders(self, *, document_id: str, name: str, folders: tuple[str, ...]) -> None:
        """Record where a document lies and what it is called."""
        body = PlaceShape(name=name, folders=list(folders)).model_dump_json().encode()
        await self._do("PUT", f"/{VERSION}/documents/{_part(document_id)}/place", body)

    async def check(self) -> None:
        """Ask whether it is there, speaks this version and takes our secret."""
        health = await self._ask(HealthShape, "GET", f"/{VERSION}/health")
        if health.version != VERSION:
            raise self._breaker.down(
                f"{self._where} speaks version '{health.version[:40]}' of the contract, and "
                f"drivefeed {VERSION}."
            )
        ours = self._place.usage_owner
        if health.usage_owner not in {None, ours}:
            raise NeedsAttention(
                f"{self._where} says that {_WHO[health.usage_owner]} the books of pages, and the "
                f"settings that {_WHO[ours]} them. Make both say the same (usage_owner), or pages "
                "are counted twice, or by nobody.",
                reason=Reason.MISCONFIGURED,
            )

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _content(self, submission: Submission) -> Content:
        if not self._place.by_url:
            return Content(store_key=submission.object_key)
        url = await self._address(submission.object_key)
        if url is None:
            raise NeedsAttention(
                f"{self._where} fetches files by URL, and the object store is a folder, which has "
                'none. Use an S3 bucket, or set content = "store_key" for a backend that reads '
                "the folder.",
                reason=Reason.MISCONFIGURED,
            )
        return Content(url=url)

    async def _do(self, method: str, target: str, body: bytes = b"") -> None:
        try:
            await self._send(method, target, body)
        except NotFound:
            return

    async def _ask(
        self, shape: type[_Shape], method: str, target: str, body: bytes = b""
    ) -> _Shape:
        answer = await self._send(method, target, body)
        try:
            found = shape.model_validate_json(answer)
        except ValidationError as error:
            raise self._breaker.down(
                f"{self._where} answered {method} {target.partition('?')[0]} with something that "
                f"is not of the contract: {_wrong(error)}. 'drivefeed backend check' tells more."
            ) from None
        self._breaker.answered()
        return found

    async def _send(self, method: str, target: str, body: bytes) -> bytes:
        """Send one request and return the body of a success.

        Raises:
            PartDown, Throttled, Transient, Permanent, NotFound: see :class:`Answers`.
        """
        self._breaker.require_closed()
        client = self._client or await self._open()
        credential = self._place.credential
        headers = {"Content-Type": "application/json"} if body else {}
        if credential is not None:
            headers |= credential.headers(
                self._clock, self._ids, method=method, target=target, body=body
            )
        url = self._place.url.rstrip("/") + target
        try:
            async with (
                asyncio.timeout(self._place.timeout_seconds),
                client.stream(method, url, content=body, headers=headers) as response,
            ):
                answer = await self._bounded(response)
                status, told = response.status_code, response.headers
        except TimeoutError:
            raise self._breaker.down(
                f"{self._where} did not answer within {self._place.timeout_seconds:g} seconds."
            ) from None
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError) as error:
            # It may have done what it was asked: the key will tell.
            said = redact(str(error)) or type(error).__name__
            raise self._breaker.lost(f"{self._where} hung up before it answered: {said}") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            said = redact(str(error)) or type(error).__name__
            raise self._breaker.down(f"{self._where} was not reached: {said}") from error
        if 200 <= status < 300:  # noqa: PLR2004 - the class of successes
            if method in {"PUT", "DELETE"}:
                self._breaker.answered()
            return answer
        raise self._answers.error_of(status, told, answer)

    async def _bounded(self, response: httpx.Response) -> bytes:
        whole = bytearray()
        async for piece in response.aiter_raw():
            whole += piece
            if len(whole) > MOST_ANSWER_BYTES:
                raise self._breaker.down(
                    f"{self._where} sent an answer of more than {MOST_ANSWER_BYTES >> 10} KiB."
                )
        return bytes(whole)

    async def _open(self) -> httpx.AsyncClient:
        async with self._opening:
            if self._client is None:
                transport = await asyncio.to_thread(self._outbound.transport, self._place.ca_file)
                self._client = httpx.AsyncClient(
                    transport=transport,
                    timeout=httpx.Timeout(self._place.timeout_seconds, connect=_CONNECT_SECONDS),
                    headers={
                        "User-Agent": f"drivefeed/{__version__}",
                        "Accept": "application/json",
                        # A bound on what arrives says nothing about what it unpacks to.
                        "Accept-Encoding": "identity",
                    },
                    trust_env=False,
                    follow_redirects=False,
                )
            return self._client


def _part(text: str) -> str:
    return quote(text, safe="")


def _round(document_id: str, import_id: str, round_: int) -> str:
    document, version = _part(document_id), _part(import_id)
    return f"/{VERSION}/documents/{document}/imports/{version}/rounds/{round_}"


def _wrong(error: ValidationError) -> str:
    """Return what is wrong, without the values: they are the backend's."""
    found = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, found["loc"])) or "the body"
    return f"{where}: {found['msg']}"

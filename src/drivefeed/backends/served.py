"""Our own backend for drivefeeds elsewhere: it takes submissions with their bytes.

A submission is answered as soon as its job is written down; the bytes are fetched by the URL then.
A URL is a secret and expires, so it is kept nowhere: a process that ends loses it. A job whose
bytes are neither here nor on their way is therefore told to be unknown, by its id and by its key.
It is then submitted again with a fresh URL, and is the same job.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx

from drivefeed.backends.contract import Code, SubmissionShape, submission_of
from drivefeed.backends.embedded import EmbeddedBackend
from drivefeed.backends.serving import Refusal
from drivefeed.domain.errors import AlreadyExists, DrivefeedError, Throttled
from drivefeed.domain.identity import idempotency_key
from drivefeed.domain.reasons import Reason
from drivefeed.domain.redact import redact
from drivefeed.ports import BackendState, BackendStatus, IndexJobState
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from drivefeed.ports import IndexJob, IndexJobs, ObjectStore, VectorIndex

_RECEIVED: Final = "received/"
_COME_AGAIN_SECONDS: Final = 5.0
_MOST_AT_ONCE: Final = 32
_PIECE: Final = 1 << 20
_SILENCE_SECONDS: Final = 60.0

_log = log("backend")


class ServedBackend(EmbeddedBackend):
    """Our own backend, with the bytes that it takes in for others.

    Args:
        client: fetches URLs; it follows no redirects.
        prepare: called with the org of a submission before its job is made.
        on_bytes: called when there may be something to work on.
    """

    def __init__(
        self,
        jobs: IndexJobs,
        index: VectorIndex,
        store: ObjectStore,
        client: httpx.AsyncClient,
        *,
        prepare: Callable[[str], Awaitable[None]],
        on_bytes: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(jobs, index)
        self._store = store
        self._client = client
        self._prepare = prepare
        self._on_bytes = on_bytes
        self._fetching: dict[str, asyncio.Task[None]] = {}

    async def accept(self, shape: SubmissionShape) -> str:
        """Accept a submission, or find what was accepted under its key.

        Raises:
            Refusal: the key is another document's, or the store has no such object.
            Throttled: too many files are being fetched.
        """
        known = await self._jobs.find(shape.key)
        if known is not None and known.submission.document_id != shape.document_id:
            raise Refusal(Code.KEY_REUSED, f"The key {shape.key} is another document's.")
        object_key = shape.content.store_key or received_key(shape.key)
        if known is None:
            await self._require_room(shape)
            await self._prepare(shape.org_id)
            known = await self._jobs.create(submission_of(shape, object_key))
        if shape.content.url is not None and not await self.has_bytes(known):
            self._begin(shape, shape.content.url, object_key)
        self._on_bytes()
        return known.job_id

    async def _require_room(self, shape: SubmissionShape) -> None:
        content = shape.content
        if content.store_key is None:
            if content.url is None:
                raise Refusal(Code.MALFORMED, "content has neither a url nor a store_key.")
            if len(self._fetching) >= _MOST_AT_ONCE:
                raise Throttled("Too many files are being fetched.", seconds=_COME_AGAIN_SECONDS)
        elif not await self._is_stored(content.store_key):
            words = f"There is no object {content.store_key} in the store that this backend reads."
            raise Refusal(Code.REFUSED, words, reason=Reason.BACKEND_REFUSED)

    async def _is_stored(self, key: str) -> bool:
        try:
            return await self._store.stat(key) is not None
        except ValueError as error:  # no store could have such a key
            raise Refusal(Code.MALFORMED, str(error)) from error

    async def status(self, job_id: str) -> BackendStatus:
        """Tell how a job stands; unknown is also one whose bytes will not come any more."""
        job = await self._jobs.get(job_id)
        if job is not None and await self._is_lost(job):
            return BackendStatus(BackendState.UNKNOWN)
        return await super().status(job_id)

    async def find(self, key: str) -> str | None:
        """Return the job of a key; none for one whose bytes will not come any more."""
        job = await self._jobs.find(key)
        return None if job is None or await self._is_lost(job) else job.job_id

    async def remove(self, *, document_id: str, import_id: str, round_: int) -> None:
        """Remove the points of a round, and its bytes where they are ours."""
        await super().remove(document_id=document_id, import_id=import_id, round_=round_)
        await self._store.delete(received_key(idempotency_key(import_id, round_)))

    async def is_ready(self, job_id: str) -> bool:
        """Tell whether a job can be worked on: its bytes are here, or it has ended."""
        job = await self._jobs.get(job_id)
        return job is None or job.state is not IndexJobState.QUEUED or await self.has_bytes(job)

    async def has_bytes(self, job: IndexJob) -> bool:
        """Tell whether the bytes of a job are here; those of a shared store always are."""
        key = job.submission.object_key
        return not key.startswith(_RECEIVED) or await self._store.stat(key) is not None

    async def _is_lost(self, job: IndexJob) -> bool:
        return (
            job.state is IndexJobState.QUEUED
            and job.submission.key not in self._fetching
            and not await self.has_bytes(job)
        )

    async def aclose(self) -> None:
        """Stop fetching; what is half here is submitted again."""
        for task in list(self._fetching.values()):
            task.cancel()
        await asyncio.gather(*self._fetching.values(), return_exceptions=True)

    def _begin(self, shape: SubmissionShape, url: str, object_key: str) -> None:
        if shape.key not in self._fetching:
            task = asyncio.create_task(self._fetch(shape, url, object_key), name="fetch")
            self._fetching[shape.key] = task
            task.add_done_callback(lambda _: self._fetched(shape.key))

    def _fetched(self, key: str) -> None:
        self._fetching.pop(key, None)
        self._on_bytes()

    async def _fetch(self, shape: SubmissionShape, url: str, object_key: str) -> None:
        try:
            async with self._client.stream("GET", url) as response:
                if not response.is_success:
                    _log.warning("fetch_refused", key=shape.key, status=response.status_code)
                    return
                await self._store.put(
                    object_key,
                    _pieces(response),
                    content_type=shape.media_type or "application/octet-stream",
                    size=shape.size,
                )
        except AlreadyExists:
            return
        except (httpx.HTTPError, httpx.InvalidURL, DrivefeedError) as error:
            # The URL is a secret, and httpx quotes it: no words of its.
            ours = isinstance(error, DrivefeedError)
            words = redact(str(error)) if ours else f"{urlsplit(url).hostname} did not send it"
            _log.warning("fetch_failed", key=shape.key, kind=type(error).__name__, error=words)


def received_key(key: str) -> str:
    """Return where the bytes of a submission by URL are kept; it fits every store."""
    return _RECEIVED + hashlib.sha256(key.encode()).hexdigest()


def fetch_timeout() -> httpx.Timeout:
    """Return how long a silence may last while a file is fetched."""
    return httpx.Timeout(_SILENCE_SECONDS, connect=10.0)


async def _pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    async for piece in response.aiter_bytes(_PIECE):
        yield piece

"""Submissions to our own backend from another machine: their bytes are taken in first.

A submission is answered once its bytes lie in our store, so that a URL that expires, or a sender
that goes away, takes nothing with it. Bytes that take long are fetched on while the sender is
asked to come again.
"""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING, Final

import httpx

from drivefeed.backends.contract import Code, SubmissionShape, submission_of
from drivefeed.backends.embedded import EmbeddedBackend
from drivefeed.backends.serving import Refusal
from drivefeed.domain.errors import AlreadyExists, Throttled
from drivefeed.domain.identity import idempotency_key
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from drivefeed.ports import IndexJobs, ObjectStore, VectorIndex

_RECEIVED: Final = "received"
_PATIENCE_SECONDS: Final = 15.0
_COME_AGAIN_SECONDS: Final = 5.0
_MOST_AT_ONCE: Final = 16
_PIECE: Final = 1 << 20
_SILENCE_SECONDS: Final = 60.0


class ServedBackend(EmbeddedBackend):
    """Our own backend, with the bytes that it took in for others."""

    def __init__(self, jobs: IndexJobs, index: VectorIndex, store: ObjectStore) -> None:
        super().__init__(jobs, index)
        self._store = store

    async def remove(self, *, document_id: str, import_id: str, round_: int) -> None:
        """Remove the points of a round, and its bytes where they are ours."""
        await super().remove(document_id=document_id, import_id=import_id, round_=round_)
        await self._store.delete(received_key(idempotency_key(import_id, round_)))


class Acceptance:
    """Takes submissions; see :class:`drivefeed.backends.serving.Accepting`.

    Args:
        client: fetches URLs; it follows no redirects.
        prepare: called with the org of a submission before its job is made.
        on_job: called when a job was made.
    """

    def __init__(
        self,
        backend: EmbeddedBackend,
        jobs: IndexJobs,
        store: ObjectStore,
        client: httpx.AsyncClient,
        *,
        prepare: Callable[[str], Awaitable[None]],
        on_job: Callable[[], None] = lambda: None,
    ) -> None:
        self._backend = backend
        self._jobs = jobs
        self._store = store
        self._client = client
        self._prepare = prepare
        self._on_job = on_job
        self._fetching: dict[str, asyncio.Task[None]] = {}

    async def __call__(self, shape: SubmissionShape) -> str:
        """Accept a submission, or find what was accepted under its key.

        Raises:
            Refusal: the key is another document's, or the bytes cannot be had.
            Throttled: the bytes are still on their way, or too many are.
        """
        known = await self._jobs.find(shape.key)
        if known is not None:
            if known.submission.document_id != shape.document_id:
                raise Refusal(Code.KEY_REUSED, f"The key {shape.key} is another document's.")
            return known.job_id
        object_key = shape.content.store_key or received_key(shape.key)
        if shape.content.store_key is None:
            await self._received(shape, object_key)
        elif await self._store.stat(object_key) is None:
            words = f"There is no object {object_key} in the store that this backend reads."
            raise Refusal(Code.REFUSED, words, reason=Reason.BACKEND_REFUSED)
        await self._prepare(shape.org_id)
        job_id = await self._backend.submit(submission_of(shape, object_key))
        self._on_job()
        return job_id

    async def aclose(self) -> None:
        """Stop fetching; what is half there is fetched again when it is submitted again."""
        for task in list(self._fetching.values()):
            task.cancel()
        await asyncio.gather(*self._fetching.values(), return_exceptions=True)

    async def _received(self, shape: SubmissionShape, object_key: str) -> None:
        url = shape.content.url
        if url is None:
            raise Refusal(Code.MALFORMED, "content has neither a url nor a store_key.")
        task = self._fetching.get(shape.key)
        if task is None:
            if len(self._fetching) >= _MOST_AT_ONCE:
                raise Throttled("Too many files are being fetched.", seconds=_COME_AGAIN_SECONDS)
            task = asyncio.create_task(self._fetch(shape, url, object_key), name="fetch")
            self._fetching[shape.key] = task
            task.add_done_callback(lambda _: self._fetching.pop(shape.key, None))
        done, _ = await asyncio.wait({task}, timeout=_PATIENCE_SECONDS)
        if not done:
            raise Throttled("The file is still being fetched.", seconds=_COME_AGAIN_SECONDS)
        await task

    async def _fetch(self, shape: SubmissionShape, url: str, object_key: str) -> None:
        try:
            async with self._client.stream("GET", url) as response:
                if not response.is_success:
                    # Nothing of the URL is said: it is a secret until it expires.
                    words = f"The URL of the file answered {response.status_code}."
                    raise Throttled(words, seconds=_COME_AGAIN_SECONDS)
                await self._store.put(
                    object_key,
                    _pieces(response),
                    content_type=shape.media_type or "application/octet-stream",
                    size=shape.size,
                )
        except AlreadyExists:
            return
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            words = f"The file could not be fetched ({type(error).__name__})."
            raise Throttled(words, seconds=_COME_AGAIN_SECONDS) from None


def received_key(key: str) -> str:
    """Return where the bytes of a submission by URL are kept; it fits every store."""
    return f"{_RECEIVED}/{hashlib.sha256(key.encode()).hexdigest()}"


def fetch_timeout() -> httpx.Timeout:
    """Return how long a silence may last while a file is fetched."""
    return httpx.Timeout(_SILENCE_SECONDS, connect=10.0)


async def _pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    async for piece in response.aiter_bytes(_PIECE):
        yield piece

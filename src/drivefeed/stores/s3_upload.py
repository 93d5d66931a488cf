"""A multipart upload in bounded memory, that leaves nothing where it fails."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

from drivefeed.domain.errors import DrivefeedError

if TYPE_CHECKING:
    from mypy_boto3_s3.type_defs import CompletedPartTypeDef

    from drivefeed.stores.s3_bucket import Bucket
    from drivefeed.stores.threads import Threads

_PLANNED_PARTS = 5000
_DOUBLE_EVERY = 500
_MIB = 1 << 20
_LARGEST = 5 << 30
PARTS_IN_FLIGHT = 3
"""Parts of one upload on their way at once: enough to keep the line busy while one is read."""


class PartSizes:
    """How large each part is, so that 10,000 parts (S3's limit) hold any stream S3 can hold.

    The first half of the parts is for what the hint announces; from there on, or without a hint,
    parts double every 500, so that even a stream of 5 TiB without a hint fits.

    Args:
        least: bytes of the smallest part, at least 5 MiB (S3's limit).
        hint: bytes of the whole, if known.
    """

    def __init__(self, least: int, hint: int | None) -> None:
        planned = -(-(hint or 0) // _PLANNED_PARTS)
        self._base = max(least, -(-planned // _MIB) * _MIB)

    def __call__(self, number: int) -> int:
        """Return the size in bytes of part ``number``, counted from 0."""
        if number < _PLANNED_PARTS:
            return self._base
        return min(_LARGEST, self._base << (1 + (number - _PLANNED_PARTS) // _DOUBLE_EVERY))


class MultipartUpload:
    """One multipart upload. Feed it parts, then finish it, or abandon it on any failure.

    Args:
        bucket: where to.
        threads: where blocking calls run.
        key: the object's full key.
        content_type: its media type.
        room: limits the parts that all uploads of a store have on their way.
        spare: gets each part back once it was sent, to be filled again.
    """

    def __init__(
        self,
        bucket: Bucket,
        threads: Threads,
        *,
        key: str,
        content_type: str,
        room: asyncio.Semaphore,
        spare: list[bytearray],
    ) -> None:
        self._bucket = bucket
        self._threads = threads
        self._key = key
        self._content_type = content_type
        self._room = room
        self._spare = spare
        self._upload: str | None = None
        self._completed = False
        self._number = 0
        self._pending: set[asyncio.Task[CompletedPartTypeDef]] = set()
        self._sent: list[CompletedPartTypeDef] = []
        self._digest = sha256()
        self.size = 0

    @property
    def sha256(self) -> str:
        """SHA-256 (hex) of what was fed."""
        return self._digest.hexdigest()

    async def begin(self) -> None:
        """Begin the upload at the service."""
        await self._threads.run(self._begin)

    def _begin(self) -> None:
        # Kept from within the thread: were the caller cancelled meanwhile, a result would be lost
        # and the upload could not be aborted.
        self._upload = self._bucket.begin(self._key, self._content_type)

    async def feed(self, part: bytearray) -> None:
        """Start sending a part; wait while there are as many on their way as may be.

        Raises:
            DrivefeedError: an earlier part failed.
        """
        await self._threads.run(self._digest.update, part)
        self.size += len(part)
        while len(self._pending) >= PARTS_IN_FLIGHT:
            await self._harvest(asyncio.FIRST_COMPLETED)
        await self._room.acquire()
        self._number += 1
        self._pending.add(asyncio.create_task(self._send(self._number, part)))

    async def finish(self) -> None:
        """Wait for all parts and make them an object.

        Raises:
            AlreadyExists: there is an object under the key.
        """
        if self._pending:
            await self._harvest(asyncio.ALL_COMPLETED)
        self._sent.sort(key=lambda part: part.get("PartNumber", 0))
        await self._threads.run(self._complete)

    def _complete(self) -> None:
        assert self._upload is not None, "begin() comes first"
        self._bucket.complete(self._key, self._upload, self._sent)
        self._completed = True

    async def abandon(self) -> None:
        """Abort the upload; without effect once it is an object.

        Waits for parts on their way, since one that arrives after the abort would stay for ever.
        If the service does not answer, the sweep of old uploads takes what is left.
        """
        if self._pending:
            pending, self._pending = self._pending, set()
            await asyncio.gather(*pending, return_exceptions=True)
        if self._upload is not None and not self._completed:
            with suppress(DrivefeedError):
                await self._threads.run(self._bucket.abort, self._key, self._upload)

    async def _harvest(self, return_when: str) -> None:
        done, self._pending = await asyncio.wait(self._pending, return_when=return_when)
        errors = [error for task in done if (error := task.exception()) is not None]
        if errors:
            raise errors[0]
        self._sent.extend(task.result() for task in done)

    async def _send(self, number: int, part: bytearray) -> CompletedPartTypeDef:
        try:
            return await self._threads.run(self._deliver, number, part)
        finally:
            self._room.release()

    def _deliver(self, number: int, part: bytearray) -> CompletedPartTypeDef:
        assert self._upload is not None, "begin() comes first"
        try:
            return self._bucket.send(self._key, self._upload, number, part)
        finally:
            self._spare.append(part)

"""The object store in a bucket of an S3 service, through boto3 in threads."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, asynccontextmanager, suppress
from hashlib import sha256
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from drivefeed.domain.errors import AlreadyExists, DrivefeedError, PartDown, Transient
from drivefeed.outbound import Outbound
from drivefeed.ports import StoredObject
from drivefeed.stores.keys import require_key, require_prefix
from drivefeed.stores.s3_bucket import Access, Bucket
from drivefeed.stores.s3_listing import in_key_order
from drivefeed.stores.s3_upload import MultipartUpload, PartSizes
from drivefeed.stores.streams import PIECE, regroup, save
from drivefeed.stores.threads import Threads
from drivefeed.stores.trial import try_out

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

    from botocore.response import StreamingBody

_GRACE = 10.0
_LEAST_PART = 5 << 20


class S3Store:
    """Implements :class:`drivefeed.ports.ObjectStore` in a bucket.

    The service has to honour ``If-None-Match: *``; :meth:`check` finds out. Amazon S3 decides
    between writers that race under one key, always. SeaweedFS does so for objects of one part,
    but may let two *processes* complete a multipart upload under the same key at the same instant;
    within one process we complete them one after the other.

    An upload needs up to five parts of memory (40 MiB), all uploads together what they have read
    and ``max_concurrency`` parts on their way.

    Args:
        bucket: its name.
        endpoint_url: the service, or None for Amazon's.
        region: or None for what the environment says.
        access_key: with ``secret_key``; None for boto3's chain (environment, files, roles).
        secret_key: never part of a message.
        prefix: goes before every key, followed by a slash.
        part_size: bytes; objects this large are sent in parts of this size, or more if hundreds of
            gigabytes are announced.
        threads: how many requests may run at once.
        max_concurrency: how many parts of large objects may be on their way at once.
        outbound: proxies and authorities to trust; by default what the environment says.
    """

    def __init__(
        self,
        bucket: str,
        *,
        endpoint_url: str | None = None,
        region: str | None = None,
        access_key: str | None = None,
        secret_key: str | None = None,
        prefix: str = "",
        part_size: int = 8 << 20,
        threads: int = 16,
        max_concurrency: int = 8,
        outbound: Outbound | None = None,
    ) -> None:
        if part_size < _LEAST_PART:
            raise ValueError(f"part_size is {part_size}; S3 wants at least {_LEAST_PART} bytes.")
        prefix = require_prefix(prefix.strip("/"))
        self._prefix = f"{prefix}/" if prefix else ""
        self._part_size = part_size
        self._bucket = Bucket(
            Access(
                bucket=bucket,
                endpoint_url=endpoint_url,
                region=region,
                access_key=access_key,
                secret_key=secret_key,
                connections=threads * 2,  # a reader keeps its own between two pieces
                outbound=outbound or Outbound.from_environment(),
            )
        )
        self._threads = Threads(limit=threads, name="s3-store", grace=_GRACE)
        self._room = asyncio.Semaphore(max_concurrency)
        self._completing: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._abandoned: set[asyncio.Task[None]] = set()

    async def put(
        self, key: str, chunks: AsyncIterator[bytes], *, content_type: str, size: int | None
    ) -> StoredObject:
        """Store a new object; see :meth:`drivefeed.ports.ObjectStore.put`.

        Raises:
            Transient: the bytes were damaged on the way, or another writer is at the same key.
        """
        async with self._suspecting():
            return await self._put(key, chunks, content_type=content_type, size=size)

    @asynccontextmanager
    async def _suspecting(self) -> AsyncIterator[None]:
        """Find out whose fault it is where a connection broke in the middle of a body.

        Raises:
            PartDown: the service does not answer at all, so it is none of the file's.
        """
        try:
            yield
        except Transient:
            await self._threads.run(self._bucket.require)
            raise

    async def _put(
        self, key: str, chunks: AsyncIterator[bytes], *, content_type: str, size: int | None
    ) -> StoredObject:
        full = self._full(key)
        sizes = PartSizes(self._part_size, size)
        spare: list[bytearray] = []
        async with aclosing(regroup(chunks, sizes, spare)) as parts:
            part = await anext(parts)
            if len(part) < sizes(0):
                digest = await self._threads.run(self._put_whole, full, part, content_type)
                return StoredObject(key=key, size=len(part), sha256=digest)
            if await self._threads.run(self._bucket.head, full) is not None:
                raise AlreadyExists(f"There is an object {full!r} in the {self._bucket.where}.")
            upload = MultipartUpload(
                self._bucket,
                self._threads,
                key=full,
                content_type=content_type,
                room=self._room,
                spare=spare,
            )
            try:
                await upload.begin()
                await upload.feed(part)
                async for part in parts:
                    await upload.feed(part)
                async with self._completing.setdefault(full, asyncio.Lock()):
                    await upload.finish()
            except BaseException:
                await self._abandon(upload)
                raise
        return StoredObject(key=key, size=upload.size, sha256=upload.sha256)

    def _put_whole(self, full: str, body: bytearray, content_type: str) -> str:
        self._bucket.put(full, body, content_type)
        return sha256(body).hexdigest()

    async def _abandon(self, upload: MultipartUpload) -> None:
        task = asyncio.create_task(upload.abandon())
        self._abandoned.add(task)
        task.add_done_callback(self._abandoned.discard)
        await asyncio.wait({task}, timeout=_GRACE)

    async def stat(self, key: str) -> StoredObject | None:
        """Return the object's size; see :meth:`drivefeed.ports.ObjectStore.stat`."""
        found = await self._threads.run(self._bucket.head, self._full(key))
        return found and StoredObject(key, found[0], modified_at=found[1])

    async def read(self, key: str) -> AsyncIterator[bytes]:
        """Yield the object's bytes; see :meth:`drivefeed.ports.ObjectStore.read`.

        Raises:
            Transient: the connection broke in the middle.
        """
        full = self._full(key)
        body = await self._threads.run(self._bucket.open, full)
        try:
            while piece := await self._piece(full, body):
                yield piece
        finally:
            body.close()

    async def _piece(self, full: str, body: StreamingBody) -> bytes:
        async with self._suspecting():
            return await self._threads.run(self._bucket.read, full, body, PIECE)

    async def fetch(self, key: str, path: Path) -> None:
        """Copy the object into a file; see :meth:`drivefeed.ports.ObjectStore.fetch`."""
        await save(self.read(key), path, self._threads)

    async def delete(self, key: str) -> bool:
        """Delete the object; see :meth:`drivefeed.ports.ObjectStore.delete`."""
        return await self._threads.run_to_its_end(self._delete, self._full(key))

    def _delete(self, full: str) -> bool:
        if self._bucket.head(full) is None:
            return False
        self._bucket.delete(full)
        return True

    async def list(self, prefix: str) -> AsyncIterator[StoredObject]:
        """Yield objects in key order; see :meth:`drivefeed.ports.ObjectStore.list`.

        Raises:
            PartDown: the service does not list in key order, so that nothing may be concluded.
        """
        require_prefix(prefix)
        async for found in in_key_order(self._bucket, self._threads, self._prefix, prefix):
            yield StoredObject(
                found.key[len(self._prefix) :], found.size, modified_at=found.modified_at
            )

    async def address(self, key: str, *, seconds: int) -> str | None:
        """Return a presigned URL; it is a secret until it expires."""
        return await self._threads.run(self._bucket.address, self._full(key), seconds)

    async def abort_uploads(self, *, before: int) -> int:
        """Abort old multipart uploads; see :meth:`drivefeed.ports.ObjectStore.abort_uploads`."""
        return await self._threads.run(self._sweep, before)

    async def unfinished_uploads(self, *, before: int) -> int:
        """Count them; see :meth:`drivefeed.ports.ObjectStore.unfinished_uploads`."""
        return len(await self._threads.run(self._begun, before))

    def _begun(self, before: int) -> Sequence[tuple[str, str]]:
        return [
            (key, upload)
            for key, upload, began in self._bucket.uploads(self._prefix)
            if began < before
        ]

    def _sweep(self, before: int) -> int:
        old = self._begun(before)
        for key, upload in old:
            self._bucket.abort(key, upload)
        return len(old)

    async def ensure_bucket(self) -> None:
        """Create the bucket if it is not there.

        Raises:
            PartDown: it is not there and we may not create it.
        """
        await self._threads.run(self._ensure)

    def _ensure(self) -> None:
        try:
            self._bucket.require()
        except PartDown:
            self._bucket.create()

    async def check(self) -> None:
        """Try the store out; see :meth:`drivefeed.ports.ObjectStore.check`."""
        await try_out(self, f"the {self._bucket.where}")

    async def aclose(self) -> None:
        """Wait for uploads that are being aborted, then release connections and threads."""
        if self._abandoned:
            await asyncio.wait(set(self._abandoned), timeout=_GRACE)
        await self._threads.aclose()
        with suppress(DrivefeedError):
            self._bucket.close()

    def _full(self, key: str) -> str:
        return self._prefix + require_key(key)

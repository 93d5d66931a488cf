"""Listings in the order of keys, also from services that list folder by folder.

Amazon S3 lists in the order of the keys' UTF-8 bytes. SeaweedFS lists the way a tree is walked:
``acme/x`` before ``acme-eu/x``, although ``-`` sorts before ``/``. Keys of drivefeed begin with
the org's name, the only segment of free length; the segments below are ids of one length, for
which both orders are one. So we order the first segment ourselves and watch over the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from drivefeed.domain.errors import Part, PartDown

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mypy_boto3_s3.type_defs import ListObjectsV2OutputTypeDef, ObjectTypeDef

    from drivefeed.stores.s3_bucket import Bucket
    from drivefeed.stores.threads import Threads

    Objects = AsyncGenerator["Found", None]


@dataclass(frozen=True, slots=True)
class Found:
    """An object of a listing, under its full key."""

    key: str
    size: int
    modified_at: int


async def in_key_order(bucket: Bucket, threads: Threads, base: str, prefix: str) -> Objects:
    """Yield all objects whose key starts with ``base + prefix``, some pages of 1,000 in memory.

    Args:
        bucket: what to list.
        threads: where requests run.
        base: the store's own prefix; below it, the first segment is ordered here.
        prefix: the start of the keys that are wanted, relative to ``base``.

    Raises:
        PartDown: the service lists in another order than that of keys.
    """
    last = ""
    listing = _flat if "/" in prefix else _by_first_segment
    async for found in listing(bucket, threads, base + prefix):
        if found.key <= last:
            raise PartDown(
                f"The {bucket.where} lists {found.key!r} after {last!r}. Listings that are not in "
                "the order of keys cannot be compared with the catalog.",
                part=Part.STORE,
            )
        last = found.key
        yield found


async def _flat(bucket: Bucket, threads: Threads, prefix: str) -> Objects:
    token: str | None = None
    while True:
        page = await threads.run(bucket.page, prefix, token)
        for entry in _objects(page):
            yield _found(entry)
        token = page.get("NextContinuationToken")
        if not token:
            return


async def _by_first_segment(bucket: Bucket, threads: Threads, prefix: str) -> Objects:
    token: str | None = None
    waiting: list[tuple[str, Found | None]] = []  # a heap of objects and, with None, folders
    while True:
        page = await threads.run(bucket.page, prefix, token, by_folder=True)
        token = page.get("NextContinuationToken")
        for entry in _objects(page):
            heappush(waiting, (entry["Key"], _found(entry)))
        for folder in page.get("CommonPrefixes", []):
            heappush(waiting, (folder["Prefix"], None))
        # In either order, what follows has a name after the last one, and so a key after it.
        passed = max((key.rstrip("/") for key, _ in waiting), default="")
        while waiting and (not token or waiting[0][0] <= passed):
            key, found = heappop(waiting)
            if found is not None:
                yield found
                continue
            async for below in _flat(bucket, threads, key):
                yield below
        if not token:
            return


def _objects(page: ListObjectsV2OutputTypeDef) -> list[ObjectTypeDef]:
    # Keys that end with a slash are marks for folders, left by consoles and by SeaweedFS.
    return [entry for entry in page.get("Contents", []) if not entry["Key"].endswith("/")]


def _found(entry: ObjectTypeDef) -> Found:
    return Found(
        key=entry["Key"],
        size=entry["Size"],
        modified_at=int(entry["LastModified"].timestamp() * 1000),
    )

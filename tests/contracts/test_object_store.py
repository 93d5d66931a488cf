"""What every object store does: one suite, run against each implementation for real."""

from __future__ import annotations

import asyncio
import hashlib
import random
import time
from typing import TYPE_CHECKING

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from drivefeed.domain.errors import AlreadyExists, NotFound
from drivefeed.stores import DirectoryStore, S3Store
from support.seaweed import BUCKET, SeaweedServer, new_prefix, seaweed  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.ports import ObjectStore, StoredObject

MIB = 1 << 20
ODD_KEYS = [
    "org/a b/c",
    "org/100%/x#1?q=1&b=2+3'\"",
    "org/é/nfc",
    "org/e\u0301/nfd",
    "org/\u202egnp.exe",
    "org/😀/" + "n" * 250,
    "org/a:b*c<d>|e",
    "org/.hidden",
    "org/%2e%2e",
]


@pytest.fixture(params=["directory", "s3"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ObjectStore]:
    if request.param == "directory":
        store: DirectoryStore | S3Store = DirectoryStore(tmp_path / "objects")
    else:
        server: SeaweedServer = request.getfixturevalue("seaweed")
        store = S3Store(BUCKET, prefix=new_prefix(), **server.settings)
        await store.ensure_bucket()
    yield store
    await store.aclose()


async def stream(content: bytes, piece: int = 300_000) -> AsyncIterator[bytes]:
    for start in range(0, len(content), piece):
        yield content[start : start + piece]


async def put(store: ObjectStore, key: str, content: bytes) -> StoredObject:
    return await store.put(key, stream(content), content_type="text/plain", size=len(content))


async def content_of(store: ObjectStore, key: str) -> bytes:
    pieces = [piece async for piece in store.read(key)]
    assert all(0 < len(piece) <= MIB for piece in pieces)
    return b"".join(pieces)


async def keys_of(store: ObjectStore, prefix: str = "") -> list[str]:
    return [found.key async for found in store.list(prefix)]


def files_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.is_file()]


async def nothing_left(store: ObjectStore) -> None:
    assert await keys_of(store) == []
    assert await store.abort_uploads(before=int(time.time() * 1000) + 3_600_000) == 0


async def test_what_goes_in_comes_out(store: ObjectStore, tmp_path: Path) -> None:
    content = b"some words\n" * 1000
    stored = await put(store, "org/document/import/1", content)
    assert (stored.key, stored.size) == ("org/document/import/1", len(content))
    assert stored.sha256 == hashlib.sha256(content).hexdigest()
    assert await content_of(store, stored.key) == content
    found = await store.stat(stored.key)
    assert (found.key, found.size) == (stored.key, len(content))
    assert abs(found.modified_at - time.time() * 1000) < 3_600_000
    await store.fetch(stored.key, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == content
    assert await keys_of(store) == [stored.key]
    assert await store.delete(stored.key) is True
    assert await store.stat(stored.key) is None
    await nothing_left(store)


async def test_what_is_not_there(store: ObjectStore, tmp_path: Path) -> None:
    assert await store.stat("org/none") is None
    assert await store.delete("org/none") is False
    with pytest.raises(NotFound, match="org/none"):
        await content_of(store, "org/none")
    with pytest.raises(NotFound):
        await store.fetch("org/none", tmp_path / "copy")
    assert files_in(tmp_path) == []
    assert await keys_of(store, "org/") == []


async def test_fetch_replaces_a_file(store: ObjectStore, tmp_path: Path) -> None:
    await put(store, "k", b"new")
    (tmp_path / "copy").write_bytes(b"older and longer")
    await store.fetch("k", tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"new"


@pytest.mark.parametrize("size", [10, 17 * MIB])
async def test_the_first_content_stays(store: ObjectStore, size: int) -> None:
    await put(store, "k", b"first")
    with pytest.raises(AlreadyExists):
        await put(store, "k", b"x" * size)
    with pytest.raises(AlreadyExists):
        await put(store, "k", b"first")
    assert await content_of(store, "k") == b"first"
    assert await store.delete("k")
    await nothing_left(store)


@pytest.mark.parametrize("size", [1000, 9 * MIB])
async def test_of_racing_writers_exactly_one_wins(store: ObjectStore, size: int) -> None:
    contents = [bytes([n]) * size for n in range(1, 6)]
    results = await asyncio.gather(
        *(put(store, "k", content) for content in contents), return_exceptions=True
    )
    lost = [result for result in results if isinstance(result, AlreadyExists)]
    won = [n for n, result in enumerate(results) if not isinstance(result, BaseException)]
    assert (len(lost), len(won)) == (4, 1), results
    assert await content_of(store, "k") == contents[won[0]]
    assert await store.delete("k")
    await nothing_left(store)


@pytest.mark.parametrize("size", [0, 1, MIB, MIB + 1, 8 * MIB - 1, 8 * MIB, 8 * MIB + 1, 32 * MIB])
@pytest.mark.parametrize("hint", ["told", "untold"])
async def test_sizes_around_every_border(store: ObjectStore, size: int, hint: str) -> None:
    content = random.Random(size).randbytes(size)
    stored = await store.put(
        "k", stream(content, MIB), content_type="x/y", size=size if hint == "told" else None
    )
    assert (stored.size, stored.sha256) == (size, hashlib.sha256(content).hexdigest())
    assert hashlib.sha256(await content_of(store, "k")).hexdigest() == stored.sha256
    assert (await store.stat("k")).size == size


@given(
    pieces=st.lists(st.binary(max_size=5000), max_size=8),
    told=st.sampled_from(["nothing", "the truth", "too little", "too much"]),
)
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_any_stream_comes_out_as_it_went_in(
    store: ObjectStore, pieces: list[bytes], told: str
) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for piece in pieces:
            yield piece

    content = b"".join(pieces)
    hint = {"nothing": None, "the truth": len(content), "too little": 1, "too much": 1 << 40}[told]
    stored = await store.put("k", chunks(), content_type="x/y", size=hint)
    assert stored.size == len(content)
    assert await content_of(store, "k") == content
    assert await store.delete("k")


@pytest.mark.parametrize("size", [100, 3 * MIB, 20 * MIB])
async def test_cancelled_in_the_middle_leaves_nothing(store: ObjectStore, size: int) -> None:
    sent = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        async for piece in stream(b"x" * size):
            yield piece
        sent.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(store.put("k", chunks(), content_type="x/y", size=None))
    await sent.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await nothing_left(store)
    await put(store, "k", b"works")


@pytest.mark.parametrize("size", [0, 100, 3 * MIB, 20 * MIB])
async def test_a_source_that_fails_leaves_nothing(store: ObjectStore, size: int) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        async for piece in stream(b"x" * size):
            yield piece
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        await store.put("k", chunks(), content_type="x/y", size=size + 100)
    await nothing_left(store)


async def test_odd_keys(store: ObjectStore) -> None:
    for key in ODD_KEYS:
        await put(store, key, key.encode())
    for key in ODD_KEYS:
        assert await content_of(store, key) == key.encode()
        assert (await store.stat(key)).size == len(key.encode())
    assert await keys_of(store) == sorted(ODD_KEYS)
    for key in ODD_KEYS:
        assert await keys_of(store, key) == [key]
        assert await store.delete(key)
    await nothing_left(store)


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/etc/x",
        "a/../b",
        "..",
        "a/./b",
        "a//b",
        "a/",
        "a\x00b",
        "a\nb",
        "a\\b",
        ".partial/x",
        "n" * 256,
        "/".join(["n" * 200] * 6),
    ],
)
async def test_keys_that_no_store_takes(store: ObjectStore, key: str) -> None:
    for refused in (
        store.stat(key),
        store.delete(key),
        store.put(key, stream(b"x"), content_type="x/y", size=1),
        content_of(store, key),
    ):
        with pytest.raises(ValueError, match="object key"):
            await refused
    await nothing_left(store)


async def test_listings_are_in_key_order(store: ObjectStore) -> None:
    keys = ["acme/d1/i/1", "acme/d1/i/2", "acme/d2/i/1", "acme-eu/d1/i/1", "acme.x", "acme0/d/1"]
    keys += ["a", "B/x", "zoë/d", "acme!"]
    for key in random.Random(1).sample(keys, len(keys)):
        await put(store, key, b"x")
    assert await keys_of(store) == sorted(keys)
    assert await keys_of(store, "acme") == sorted(k for k in keys if k.startswith("acme"))
    assert await keys_of(store, "acme/d1/") == ["acme/d1/i/1", "acme/d1/i/2"]
    assert await keys_of(store, "acme/d2/i/1") == ["acme/d2/i/1"]
    assert await keys_of(store, "nobody/") == []
    assert [found.size async for found in store.list("B/")] == [1]


async def test_listings_longer_than_a_page(store: ObjectStore) -> None:
    keys = [f"org/{n:04}/x" for n in range(1100)] + [f"org{n:04}" for n in range(5)]
    gate = asyncio.Semaphore(16)

    async def one(key: str) -> None:
        async with gate:
            await put(store, key, b"x")

    await asyncio.gather(*(one(key) for key in keys))
    assert await keys_of(store) == sorted(keys)
    assert await keys_of(store, "org/") == sorted(keys)[:1100]


async def test_only_old_uploads_are_aborted(store: ObjectStore) -> None:
    sent, go_on = asyncio.Event(), asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        async for piece in stream(b"x" * 17 * MIB, MIB):
            yield piece
        sent.set()
        await go_on.wait()

    began = int(time.time() * 1000)
    task = asyncio.create_task(store.put("k", chunks(), content_type="x/y", size=17 * MIB))
    await sent.wait()
    assert await store.abort_uploads(before=began - 60_000) == 0
    go_on.set()
    assert (await task).size == 17 * MIB


async def test_old_uploads_are_aborted(store: ObjectStore) -> None:
    sent = asyncio.Event()

    async def chunks() -> AsyncIterator[bytes]:
        async for piece in stream(b"x" * 17 * MIB, MIB):
            yield piece
        sent.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(store.put("k", chunks(), content_type="x/y", size=17 * MIB))
    await sent.wait()
    later = int(time.time() * 1000) + 60_000
    assert await store.unfinished_uploads(before=later - 3_600_000) == 0
    assert await store.unfinished_uploads(before=later) == 1
    assert await store.abort_uploads(before=later) == 1
    assert await store.unfinished_uploads(before=later) == 0
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await nothing_left(store)


async def test_an_address_gives_the_object_to_anybody_for_some_time(store: ObjectStore) -> None:
    await put(store, "org/a b/ü", b"content")
    address = await store.address("org/a b/ü", seconds=60)
    if isinstance(store, DirectoryStore):
        assert address is None
        return
    assert address is not None
    async with httpx.AsyncClient(trust_env=False) as anybody:
        assert (await anybody.get(address)).content == b"content"
        assert (await anybody.get(address.replace("Signature=", "Signature=0"))).status_code == 403
    assert await store.address("org/a b/ü", seconds=61) != address


async def test_check_passes_and_leaves_nothing(store: ObjectStore) -> None:
    await store.check()
    await nothing_left(store)

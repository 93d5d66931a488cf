"""What a person reads when the S3 service or the settings for it are wrong."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from drivefeed.domain.errors import Part, PartDown, Transient
from drivefeed.stores import S3Store
from support.seaweed import (
    ACCESS_KEY,
    BUCKET,
    SECRET_KEY,
    SeaweedServer,
    new_prefix,
    own_seaweed,  # noqa: F401 - a fixture
    seaweed,  # noqa: F401 - a fixture
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine
    from pathlib import Path

MIB = 1 << 20


async def stream(size: int) -> AsyncIterator[bytes]:
    for start in range(0, size, MIB):
        yield b"x" * min(MIB, size - start)


def calls(store: S3Store, path: Path) -> dict[str, Callable[[], Coroutine[object, object, object]]]:
    async def read() -> None:
        async for _ in store.read("org/k"):
            pass

    async def listing(prefix: str) -> None:
        async for _ in store.list(prefix):
            pass

    return {
        "put": lambda: store.put("org/k", stream(10), content_type="x/y", size=10),
        "put parts": lambda: store.put("org/k", stream(9 * MIB), content_type="x/y", size=None),
        "stat": lambda: store.stat("org/k"),
        "read": read,
        "fetch": lambda: store.fetch("org/k", path / "copy"),
        "delete": lambda: store.delete("org/k"),
        "list": lambda: listing(""),
        "list below": lambda: listing("org/"),
        "abort_uploads": lambda: store.abort_uploads(before=0),
        "check": store.check,
    }


async def all_say(store: S3Store, path: Path, *words: str) -> None:
    for name, call in calls(store, path).items():
        with pytest.raises(PartDown) as caught:
            await call()
        text = str(caught.value)
        assert caught.value.part is Part.STORE, name
        assert store._bucket._access.bucket in text, (name, text)
        assert any(word in text for word in words), (name, text)
        assert SECRET_KEY not in text, name
        assert "wrong-secret" not in text, name
    await store.aclose()


async def test_a_missing_bucket_is_never_an_empty_one(
    seaweed: SeaweedServer,  # noqa: F811
    tmp_path: Path,
) -> None:
    store = S3Store("no-such-bucket", **seaweed.settings)
    await all_say(store, tmp_path, "there is no such bucket. Create it")


async def test_a_name_that_no_bucket_can_have(
    seaweed: SeaweedServer,  # noqa: F811
    tmp_path: Path,
) -> None:
    store = S3Store("Not a bucket!", **seaweed.settings)
    await all_say(store, tmp_path, "not valid. Correct the settings")


async def test_an_unknown_access_key(
    seaweed: SeaweedServer,  # noqa: F811
    tmp_path: Path,
) -> None:
    wrong = {"access_key": "nobody", "secret_key": "wrong-secret"}
    store = S3Store(BUCKET, **(seaweed.settings | wrong))
    await all_say(store, tmp_path, "Correct the access key", "refuses these credentials")


async def test_a_secret_that_does_not_belong_to_the_key(
    seaweed: SeaweedServer,  # noqa: F811
    tmp_path: Path,
) -> None:
    store = S3Store(BUCKET, **(seaweed.settings | {"secret_key": "wrong-secret"}))
    await all_say(store, tmp_path, "Correct the secret", "refuses these credentials")


async def test_nobody_listens(tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        store = S3Store(
            "b-1",
            endpoint_url=f"http://127.0.0.1:{taken.getsockname()[1]}",
            region="us-east-1",
            access_key=ACCESS_KEY,
            secret_key=SECRET_KEY,
        )
        await all_say(store, tmp_path, "cannot be reached")


async def test_an_endpoint_that_is_no_url(tmp_path: Path) -> None:
    store = S3Store("b-1", endpoint_url="localhost", access_key="a", secret_key=SECRET_KEY)
    await all_say(store, tmp_path, "Correct the endpoint")


async def test_no_credentials_at_all(
    seaweed: SeaweedServer,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "none"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    store = S3Store(BUCKET, endpoint_url=seaweed.endpoint_url, region="us-east-1")
    await all_say(store, tmp_path, "no credentials were found")


@pytest.mark.slow
async def test_killed_and_started_again(
    own_seaweed: SeaweedServer,  # noqa: F811
    tmp_path: Path,
) -> None:
    store = S3Store(BUCKET, **own_seaweed.settings)
    await store.ensure_bucket()
    await store.ensure_bucket()
    await store.put("org/before", stream(9 * MIB), content_type="x/y", size=9 * MIB)

    async def chunks() -> AsyncIterator[bytes]:
        async for piece in stream(20 * MIB):
            yield piece
        own_seaweed.kill()
        async for piece in stream(20 * MIB):
            yield piece

    with pytest.raises(PartDown, match="cannot be reached"):
        await store.put("org/k", chunks(), content_type="x/y", size=40 * MIB)
    for name, call in calls(store, tmp_path).items():
        with pytest.raises(PartDown, match="cannot be reached"):
            await call()
        assert not (tmp_path / "copy").exists(), name
    own_seaweed.start()
    assert [found.key async for found in store.list("")] == ["org/before"]
    assert len(b"".join([piece async for piece in store.read("org/before")])) == 9 * MIB
    await store.put("org/k", stream(9 * MIB), content_type="x/y", size=9 * MIB)
    await store.aclose()


async def test_killed_while_reading(own_seaweed: SeaweedServer) -> None:  # noqa: F811
    store = S3Store(BUCKET, **own_seaweed.settings)
    await store.ensure_bucket()
    await store.put("org/k", stream(40 * MIB), content_type="x/y", size=40 * MIB)
    pieces = store.read("org/k")
    assert await anext(pieces)
    own_seaweed.kill()
    # It is asked once more: where it does not answer at all, the file is not to blame.
    with pytest.raises(PartDown):
        assert not [piece async for piece in pieces]
    await store.aclose()


async def test_a_listing_in_another_order_is_refused(seaweed: SeaweedServer) -> None:  # noqa: F811
    store = S3Store(BUCKET, prefix=new_prefix(), **seaweed.settings)
    await store.ensure_bucket()
    for key in ("org/d/x", "org/d-1"):  # SeaweedFS lists the folder first
        await store.put(key, stream(1), content_type="x/y", size=1)
    with pytest.raises(PartDown, match="the order of keys"):
        assert [found.key async for found in store.list("org/")]
    await store.aclose()


async def test_a_service_that_overwrites_does_not_pass_the_check(
    seaweed: SeaweedServer,  # noqa: F811
) -> None:
    store = S3Store(BUCKET, prefix=new_prefix(), **seaweed.settings)
    await store.ensure_bucket()

    def forget_the_condition(params: dict[str, dict[str, str]], **_: object) -> None:
        params["headers"].pop("If-None-Match")

    client = store._bucket._client
    client.meta.events.register("before-call.s3.PutObject", forget_the_condition)
    with pytest.raises(PartDown, match=r"writing again .* does not honour"):
        await store.check()
    await store.aclose()


async def test_bytes_damaged_on_the_way_are_refused(seaweed: SeaweedServer) -> None:  # noqa: F811
    store = S3Store(BUCKET, prefix=new_prefix(), **seaweed.settings)
    await store.ensure_bucket()

    def damage(params: dict[str, bytearray], **_: object) -> None:
        params["body"] = bytearray(params["body"])
        params["body"][5] ^= 1

    client = store._bucket._client
    for operation in ("PutObject", "UploadPart"):
        client.meta.events.register(f"before-call.s3.{operation}", damage)
    for size in (1000, 20 * MIB):
        with pytest.raises(Transient, match="damaged on the way"):
            await store.put("k", stream(size), content_type="x/y", size=size)
        assert await store.stat("k") is None
    assert await store.abort_uploads(before=1 << 60) == 0
    await store.aclose()

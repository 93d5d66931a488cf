"""What every implementation of the Source port does, shown over HTTP against graphsim."""

from __future__ import annotations

import hashlib
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from drivefeed.domain.errors import (
    CursorExpired,
    NeedsAttention,
    NotFound,
    Permanent,
    Throttled,
    Transient,
)
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import DriveRef, ItemKind
from graphsim.bodies import SyntheticBody
from graphsim.serving import GraphSim, serve
from integration.graph_source.kit import (
    HurriedClock,
    account_of,
    content,
    crawl,
    sim_state,
    source_of,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from drivefeed.ports import Source
    from graphsim.drives import MemoryDrive


@dataclass
class Ground:
    """A source, the drive it reads, and the other side of that drive."""

    source: Source
    ref: DriveRef
    sim: GraphSim

    @property
    def drive(self) -> MemoryDrive:
        return self.sim.memory


@asynccontextmanager
async def graph(profile: str) -> AsyncIterator[Ground]:
    async with serve(state=sim_state(), page_size=7, profile=profile) as sim:
        source = source_of(account_of(sim), HurriedClock())
        try:
            yield Ground(source, DriveRef("sim", sim.memory.id), sim)
        finally:
            await source.aclose()


@pytest.fixture(params=["business", "personal"])
async def ground(request: pytest.FixtureRequest) -> AsyncIterator[Ground]:
    async with graph(request.param) as made:
        yield made


async def test_an_empty_drive_has_its_root(ground: Ground) -> None:
    items, link = await crawl(ground.source, ground.ref)
    assert [(item.kind, item.parent_id) for item in items.values()] == [(ItemKind.ROOT, None)]
    described = await ground.source.drive(ground.ref)
    assert described.root_id == ground.drive.tree.root_id == next(iter(items))
    assert described.drive_id == ground.ref.drive_id
    assert described.drive_type == ground.drive.profile.value
    assert link


async def test_everything_is_listed_over_many_pages(ground: Ground) -> None:
    folder = ground.drive.create_folder("folder")
    files = [ground.drive.create_file(f"{n}.txt", b"x" * n, folder.id) for n in range(30)]
    items, _ = await crawl(ground.source, ground.ref)
    assert set(items) == {ground.drive.tree.root_id, folder.id, *(file.id for file in files)}
    last = items[files[-1].id]
    assert (last.name, last.size, last.kind, last.parent_id) == (
        "29.txt", 29, ItemKind.FILE, folder.id,
    )  # fmt: skip
    assert last.etag
    assert last.quick_xor
    assert last.modified_at
    assert items[folder.id].kind is ItemKind.FOLDER


async def test_a_stored_link_tells_what_changed_since(ground: Ground) -> None:
    drive = ground.drive
    folder = drive.create_folder("folder")
    kept = drive.create_file("kept.txt", b"1", folder.id)
    gone = drive.create_file("gone.txt", b"2", folder.id)
    _, link = await crawl(ground.source, ground.ref)
    drive.rename(kept.id, "renamed.txt")
    drive.delete(gone.id)
    new = drive.create_file("new.txt", b"3")
    changes, later = await crawl(ground.source, ground.ref, link)
    assert changes[kept.id].name == "renamed.txt"
    assert changes[gone.id].deleted
    assert not changes[new.id].deleted
    nothing, _ = await crawl(ground.source, ground.ref, later)
    assert not {kept.id, gone.id, new.id} & set(nothing)


async def test_an_expired_link_asks_for_a_new_enumeration(ground: Ground) -> None:
    _, link = await crawl(ground.source, ground.ref)
    ground.drive.expire_tokens()
    with pytest.raises(CursorExpired):
        await ground.source.delta(ground.ref, link)
    await crawl(ground.source, ground.ref)


async def test_an_item_by_id(ground: Ground) -> None:
    file = ground.drive.create_file("a.txt", b"abc")
    item = await ground.source.item(ground.ref, file.id)
    assert (item.item_id, item.name, item.size) == (file.id, "a.txt", 3)
    ground.drive.delete(file.id)
    with pytest.raises(NotFound):
        await ground.source.item(ground.ref, file.id)
    with pytest.raises(NotFound):
        await ground.source.item(ground.ref, "neverwas")


@pytest.mark.parametrize(
    "name", ["plain", "# 100% of 'it' & more", "test%46", "a+b;c=d", "é ü 漢字 🎈", "q?u@e,s!t"]
)
async def test_a_folder_by_path(ground: Ground, name: str) -> None:
    outer = ground.drive.create_folder(name)
    inner = ground.drive.create_folder(name, outer.id)
    found = await ground.source.item_by_path(ground.ref, f"/{name}/{name}")
    assert (found.item_id, found.kind) == (inner.id, ItemKind.FOLDER)


async def test_the_empty_path_is_the_root_and_unknown_ones_are_not_found(ground: Ground) -> None:
    root = await ground.source.item_by_path(ground.ref, "")
    assert (root.item_id, root.kind) == (ground.drive.tree.root_id, ItemKind.ROOT)
    with pytest.raises(NotFound):
        await ground.source.item_by_path(ground.ref, "no/such/folder")


@pytest.mark.parametrize("size", [0, 1, 65_536, 3_000_001])
async def test_a_file_comes_byte_for_byte(ground: Ground, size: int) -> None:
    body = SyntheticBody(size, size)
    file = ground.drive.create_file("a.bin", body)
    digest = hashlib.sha256()
    async with ground.source.download(ground.ref, file.id) as download:
        assert download.size == size
        async for chunk in download.chunks():
            assert 0 < len(chunk) <= 1024 * 1024
            digest.update(chunk)
    assert digest.digest() == hashlib.sha256(body.read(0, size)).digest()


async def test_a_download_may_be_left_early(ground: Ground) -> None:
    file = ground.drive.create_file("a.bin", SyntheticBody(1, 5_000_000))
    async with ground.source.download(ground.ref, file.id) as download:
        async for _ in download.chunks():
            break
    assert len(await content(ground.source, ground.ref, file.id)) == 5_000_000


async def test_a_cut_is_resumed_without_a_seam(ground: Ground) -> None:
    body = SyntheticBody(2, 2_000_000)
    file = ground.drive.create_file("a.bin", body)
    ground.sim.faults.add("truncate", op="download", after=700_000)
    ground.sim.faults.add("reset", op="download", after=900_000)
    assert await content(ground.source, ground.ref, file.id) == body.read(0, body.size)


async def test_what_cannot_be_completed_is_an_error(ground: Ground) -> None:
    file = ground.drive.create_file("a.bin", SyntheticBody(2, 2_000_000))
    ground.sim.faults.add("truncate", op="download", after=0, count=-1, skip=0)
    with pytest.raises(Transient):
        await content(ground.source, ground.ref, file.id)


async def test_a_file_that_is_gone_or_refused(ground: Ground) -> None:
    gone = ground.drive.create_file("gone.txt", b"x")
    ground.drive.delete(gone.id)
    with pytest.raises(NotFound):
        await content(ground.source, ground.ref, gone.id)
    file = ground.drive.create_file("a.txt", b"x")
    for code, reason in (
        ("accessDenied", Reason.DOWNLOAD_FORBIDDEN),
        ("malwareDetected", Reason.MALWARE),
    ):
        ground.sim.faults.add("status", op="content", status=403, code=code)
        with pytest.raises(Permanent) as caught:
            await content(ground.source, ground.ref, file.id)
        assert caught.value.reason is reason


async def test_a_throttle_tells_how_long_to_wait(ground: Ground) -> None:
    ground.sim.faults.add("throttle", op="delta", retry_after="44")
    with pytest.raises(Throttled) as caught:
        await ground.source.delta(ground.ref, None)
    assert caught.value.seconds == 44.0


async def test_a_drive_that_is_gone_asks_a_person_and_its_items_are_not_called_gone(
    ground: Ground,
) -> None:
    file = ground.drive.create_file("a.txt", b"x")
    _, link = await crawl(ground.source, ground.ref)
    ground.drive.quirks.cutoff = True
    for ask in (
        ground.source.drive(ground.ref),
        ground.source.delta(ground.ref, None),
        ground.source.delta(ground.ref, link),
        ground.source.item(ground.ref, file.id),
        content(ground.source, ground.ref, file.id),
    ):
        with pytest.raises(NeedsAttention) as caught:
            await ask
        assert caught.value.reason is Reason.DRIVE_GONE


async def test_an_account_that_was_taken_away_asks_a_person(ground: Ground) -> None:
    with pytest.raises(NeedsAttention) as caught:
        await ground.source.delta(DriveRef("other", ground.ref.drive_id), None)
    assert caught.value.reason is Reason.MISCONFIGURED

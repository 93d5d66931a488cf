from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

import msgspec
import pytest

from graphsim.bodies import READ_SIZE
from graphsim.bulk import BulkDrive
from graphsim.clock import ManualClock
from graphsim.cursors import Wish
from graphsim.items import Item, Kind, Profile
from graphsim.quickxor import quickxor
from graphsim.rendering import render_item, selected
from graphsim.seals import Seals
from unit.graphsim.kit import desk

if TYPE_CHECKING:
    from collections.abc import Iterator

SELECT = (
    "id,name,size,eTag,cTag,file,folder,root,deleted,parentReference,webUrl,fileSystemInfo,"
    "createdDateTime,lastModifiedDateTime"
)


def _drive(profile: Profile = Profile.BUSINESS, files: int = 1000, folders: int = 60) -> BulkDrive:
    return BulkDrive("bulk", profile, Seals(b"secret"), ManualClock(), files=files, folders=folders)


def _pages(drive: BulkDrive, token: str | None, limit: int = 97) -> Iterator[list[Item]]:
    while True:
        page = drive.rounds.page(token, Wish(), limit)
        yield list(page.items)
        token = page.token
        if page.is_last:
            drive.name = token  # the link for the next round
            return


def _mirrored(known: dict[str, Item], pages: Iterator[list[Item]]) -> dict[str, Item]:
    for page in pages:
        for item in page:
            if item.deleted:
                known.pop(item.id, None)
            else:
                known[item.id] = item
    return known


@pytest.mark.parametrize("profile", list(Profile))
async def test_everything_is_listed_once_and_has_its_bytes(profile: Profile) -> None:
    drive = _drive(profile)
    items = [item for page in _pages(drive, None) for item in page]
    assert len(items) == len({item.id for item in items}) == 1061 == len(drive.tree.snapshot())
    places = {item.id for item in items}
    assert all(item.parent_id in places for item in items if item.parent_id)
    for item in items[61::83]:
        again = drive.tree.live(item.id)
        assert again == item
        _, body = await drive.open(item)
        content = body.read(0, READ_SIZE)
        assert len(content) == item.size
        assert quickxor(content) == item.quickxor
        assert item.name[9:16].encode() in content
    files = [item for item in items if item.kind is Kind.FILE]
    assert drive.tree.total_size(drive.tree.root) == sum(item.size for item in files)
    folders = [item for item in items if item.kind is Kind.FOLDER]
    assert sum(drive.tree.child_count(item.id) for item in folders) == 1060
    assert sum(len(drive.tree.children(item.id)) for item in folders) == 1060


def test_changes_are_told_and_nothing_else() -> None:
    drive = _drive()
    known = _mirrored({}, _pages(drive, None))
    made = drive.change(200, seed=3)
    assert made.total() == 200
    assert set(made) == {"replace", "rename", "create", "delete"}
    folder = next(item for item in known.values() if item.name == "folder 00055")
    drive.move(folder.id, next(one.id for one in known.values() if one.name == "folder 00007"))
    drive.delete(next(one.id for one in known.values() if one.name == "folder 00003"))
    told = list(_pages(drive, drive.name))
    assert sum(map(len, told)) < 400
    known = _mirrored(known, iter(told))
    now = {item.id: item for item in drive.tree.walk()}
    assert known == now
    assert _mirrored({}, _pages(drive, None)) == now
    assert len(now) == len(drive.tree.snapshot())
    for item in now.values():
        if item.kind is Kind.FOLDER:
            below = [one for one in now.values() if one.parent_id == item.id]
            assert drive.tree.child_count(item.id) == len(below)
            assert {one.id for one in drive.tree.children(item.id)} == {one.id for one in below}
    size = sum(item.size for item in now.values())
    assert drive.tree.total_size(drive.tree.root) == size


def test_a_crawl_shows_one_moment() -> None:
    drive = _drive()
    pages = _pages(drive, None)
    first = next(pages)
    before = {item.id: item for item in drive.tree.walk()}
    drive.change(300)
    seen = {item.id: item for item in first} | {item.id: item for page in pages for item in page}
    assert seen == before
    assert _mirrored(seen, _pages(drive, drive.name)) == {one.id: one for one in drive.tree.walk()}


@pytest.mark.parametrize("profile", list(Profile))
async def test_the_fast_way_to_write_a_file_says_the_same(profile: Profile) -> None:
    drive = _drive(profile)
    drive.change(50)
    async with desk(profile, drive=drive) as here:
        here.app.add_site("Team").put(drive, "Library")
        for select in (SELECT, "name,deleted", "id,parentReference/id,file"):
            fast = 0
            for item in list(drive.tree.walk())[61:400]:
                raw = drive.raw(item, select)
                if raw is None:
                    continue
                fast += 1
                usual = selected(render_item(drive, item, lambda _: "", in_delta=True), select)
                assert msgspec.json.decode(raw) == usual
                assert list(msgspec.json.decode(raw)) == list(usual)
            assert fast > 300
        assert drive.raw(item, None) is None
        page = await here.json(f"root/delta?$select={SELECT}&$top=1000")
        assert page["value"][0]["name"] == "root"


async def test_pages_that_mislead_do_so_for_generated_files() -> None:
    async with desk(drive=_drive(), page_size=200) as here:
        here.fault("drop_fields", op="delta", fields=["name"])
        shown = (await here.json(f"root/delta?$select={SELECT}"))["value"]
        assert not any("name" in one for one in shown)


def test_a_million_files_need_no_memory() -> None:
    tracemalloc.start()
    try:
        drive = _drive(files=1_000_000, folders=5_000)
        page = drive.rounds.page(None, Wish(), 1000)
        for _ in range(10):
            page = drive.rounds.page(page.token, Wish(), 1000)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(drive.tree.snapshot()) == 1_005_001
    assert most < 20_000_000


def test_more_files_than_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="1 to 9999999 files"):
        _drive(files=10**7)

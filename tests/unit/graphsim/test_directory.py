from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sqlite3
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsim.bodies import hash_body
from graphsim.clock import ManualClock
from graphsim.cursors import Wish
from graphsim.directory import DirectoryDrive
from graphsim.errors import GraphError
from graphsim.items import Item, Profile
from graphsim.quickxor import quickxor
from graphsim.seals import Seals

Serve = Callable[[], DirectoryDrive]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "served"
    path.mkdir()
    return path


@pytest.fixture
def serve(tmp_path: Path, folder: Path) -> Iterator[Serve]:
    """Serve the folder; calling it again is a restart."""
    open_drives: list[DirectoryDrive] = []

    def start() -> DirectoryDrive:
        for drive in open_drives:
            drive.close()
        open_drives[:] = [_open(folder, tmp_path / "state")]
        return open_drives[0]

    yield start
    for drive in open_drives:
        drive.close()


def _open(folder: Path, state: Path) -> DirectoryDrive:
    return DirectoryDrive(folder, Profile.BUSINESS, Seals(b"secret"), ManualClock(), state)


async def _items(drive: DirectoryDrive) -> dict[str, Item]:
    await drive.refresh(at_once=True)
    return {"/".join(drive.tree.names(item)): item for item in drive.tree.walk() if item.parent_id}


def _as_told(items: dict[str, Item]) -> dict[str, Item]:
    """Leave out how they lie on the disk, where a file is looked at anew once it is older."""
    return {path: msgspec.structs.replace(one, place=None) for path, one in items.items()}


def _age(folder: Path) -> None:
    """Make all files old, so that no look needs to read them twice."""
    for path in folder.rglob("*.txt"):
        os.utime(path, (1_700_000_000, 1_700_000_000))


def _save_like_an_editor(path: Path, text: str) -> None:
    draft = path.with_name(f".{path.name}.tmp")
    draft.write_text(text)
    draft.replace(path)


async def test_the_tree_is_what_is_on_disk(folder: Path, serve: Serve) -> None:
    (folder / "sub").mkdir()
    (folder / "a.txt").write_text("a")
    (folder / "sub" / "b.txt").write_text("bb")
    items = await _items(serve())
    assert {path: item.size for path, item in items.items()} == {
        "sub": 0,
        "a.txt": 1,
        "sub/b.txt": 2,
    }
    assert items["sub/b.txt"].quickxor == quickxor(b"bb")


async def test_an_edit_in_place_keeps_the_id(folder: Path, serve: Serve) -> None:
    (folder / "a.txt").write_text("one")
    drive = serve()
    before = (await _items(drive))["a.txt"]
    (folder / "a.txt").write_text("two")
    after = (await _items(drive))["a.txt"]
    assert after.id == before.id
    assert after.quickxor == quickxor(b"two")
    assert after.ctag_version == before.ctag_version + 1


async def test_an_edit_within_one_tick_of_the_clock_is_seen(folder: Path, serve: Serve) -> None:
    path = folder / "a.txt"
    path.write_text("one")
    drive = serve()
    await _items(drive)
    facts = path.stat()
    path.write_text("two")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert (await _items(drive))["a.txt"].quickxor == quickxor(b"two")


async def test_a_file_from_the_future_is_read_once(folder: Path, serve: Serve) -> None:
    (folder / "a.txt").write_text("one")
    os.utime(folder / "a.txt", (4_000_000_000, 4_000_000_000))
    drive = serve()
    for _ in range(3):
        assert (await _items(drive))["a.txt"].quickxor == quickxor(b"one")
    assert drive.files_read == 1


async def test_saving_by_rename_keeps_the_id(folder: Path, serve: Serve) -> None:
    path = folder / "a.txt"
    path.write_text("one")
    drive = serve()
    before = (await _items(drive))["a.txt"]
    _save_like_an_editor(path, "two")
    items = await _items(drive)
    assert list(items) == ["a.txt"]
    assert items["a.txt"].id == before.id
    assert items["a.txt"].quickxor == quickxor(b"two")


async def test_saving_with_a_backup_that_stays_keeps_the_id(folder: Path, serve: Serve) -> None:
    path = folder / "a.txt"
    path.write_text("one")
    drive = serve()
    before = (await _items(drive))["a.txt"]
    path.rename(folder / "a.txt~")
    path.write_text("two")
    items = await _items(drive)
    assert items["a.txt"].id == before.id
    assert items["a.txt~"].id != before.id


async def test_saving_seen_in_the_middle_keeps_the_id(folder: Path, serve: Serve) -> None:
    path = folder / "a.txt"
    path.write_text("one")
    drive = serve()
    before = (await _items(drive))["a.txt"]
    draft = folder / "a.tmp"
    draft.write_text("two")
    await _items(drive)
    draft.replace(path)
    items = await _items(drive)
    assert {path: item.id for path, item in items.items()} == {"a.txt": before.id}


async def test_renames_and_moves_keep_ids_and_read_nothing(folder: Path, serve: Serve) -> None:
    (folder / "old" / "deep").mkdir(parents=True)
    (folder / "old" / "deep" / "x.txt").write_text("x")
    (folder / "y.txt").write_text("y")
    _age(folder)
    drive = serve()
    before = await _items(drive)
    read = drive.files_read
    (folder / "old").rename(folder / "new")
    (folder / "y.txt").rename(folder / "new" / "z.txt")
    after = await _items(drive)
    assert {path: item.id for path, item in after.items()} == {
        "new": before["old"].id,
        "new/deep": before["old/deep"].id,
        "new/deep/x.txt": before["old/deep/x.txt"].id,
        "new/z.txt": before["y.txt"].id,
    }
    assert drive.files_read == read


async def test_renaming_a_folder_is_one_change(folder: Path, serve: Serve) -> None:
    (folder / "old").mkdir()
    for number in range(5):
        (folder / "old" / f"{number}.txt").write_text("x")
    drive = serve()
    items = await _items(drive)
    token = drive.rounds.page("latest", Wish(), 100).token
    (folder / "old").rename(folder / "new")
    await drive.refresh(at_once=True)
    page = drive.rounds.page(token, Wish(), 100)
    assert [item.id for item in page.items] == [drive.tree.root_id, items["old"].id]


async def test_a_case_only_rename_keeps_the_id(folder: Path, serve: Serve) -> None:
    (folder / "report.txt").write_text("x")
    drive = serve()
    before = (await _items(drive))["report.txt"]
    (folder / "report.txt").rename(folder / "Report.txt")
    assert {path: item.id for path, item in (await _items(drive)).items()} == {
        "Report.txt": before.id
    }


async def test_a_copy_is_a_new_item(folder: Path, serve: Serve) -> None:
    (folder / "a.txt").write_text("x")
    drive = serve()
    before = (await _items(drive))["a.txt"]
    shutil.copy2(folder / "a.txt", folder / "b.txt")
    os.link(folder / "a.txt", folder / "c.txt")
    items = await _items(drive)
    assert items["a.txt"].id == before.id
    assert len({item.id for item in items.values()}) == 3


async def test_a_new_file_with_a_used_inode_is_new(folder: Path, serve: Serve) -> None:
    drive = serve()
    for attempt in range(20):
        (folder / f"a{attempt}").write_text(f"first {attempt}")
        before = (await _items(drive))[f"a{attempt}"]
        (folder / f"a{attempt}").unlink()
        (folder / f"b{attempt}").write_text(f"second, longer {attempt}")
        after = (await _items(drive))[f"b{attempt}"]
        assert after.id != before.id


@pytest.mark.parametrize("same", [True, False])
async def test_a_file_put_back_with_its_bytes(folder: Path, serve: Serve, same: bool) -> None:  # noqa: FBT001
    (folder / "sub").mkdir()
    path = folder / "sub" / "a.txt"
    path.write_text("same")
    drive = serve()
    drive.quirks.restore = "same" if same else "new"
    before = await _items(drive)
    shutil.rmtree(folder / "sub")
    assert await _items(drive) == {}
    path.parent.mkdir()
    path.write_text("same")
    after = await _items(drive)
    assert (after["sub/a.txt"].id == before["sub/a.txt"].id) is same
    assert (after["sub"].id == before["sub"].id) is same


async def test_a_file_put_back_with_other_bytes_is_new(folder: Path, serve: Serve) -> None:
    path = folder / "a.txt"
    path.write_text("one")
    drive = serve()
    before = (await _items(drive))["a.txt"]
    path.unlink()
    await _items(drive)
    path.write_text("two")
    assert (await _items(drive))["a.txt"].id != before.id


async def test_ids_and_tokens_survive_a_restart(folder: Path, serve: Serve) -> None:
    (folder / "sub").mkdir()
    (folder / "sub" / "a.txt").write_text("x")
    (folder / "gone.txt").write_text("gone")
    drive = serve()
    before = await _items(drive)
    token = drive.rounds.page("latest", Wish(), 10).token
    (folder / "sub").rename(folder / "moved")
    (folder / "gone.txt").unlink()
    drive = serve()
    after = await _items(drive)
    assert after["moved"].id == before["sub"].id
    assert after["moved/a.txt"].id == before["sub/a.txt"].id
    page = drive.rounds.page(token, Wish(), 10)
    assert {(item.id, item.deleted) for item in page.items} == {
        (drive.tree.root_id, False),
        (before["sub"].id, False),
        (before["gone.txt"].id, True),
    }
    (folder / "gone.txt").write_text("gone")
    assert (await _items(serve()))["gone.txt"].id == before["gone.txt"].id


async def test_nothing_is_read_again_after_a_restart(folder: Path, serve: Serve) -> None:
    (folder / "a.txt").write_text("x")
    _age(folder)
    await _items(serve())
    drive = serve()
    await _items(drive)
    assert drive.files_read == 0


NAMES = [
    "a#b.txt",
    "100%41.txt",
    "it's.txt",
    "😀 smile.txt",
    "\u202eright to left\u202c.txt",
    unicodedata.normalize("NFD", "Ångström é.txt"),
    "x" * 246 + ".txt",
    " leading and trailing ",
    "colon: and \\ back.txt",
    "new\nline.txt",
    "a;b&c=d?e+f.txt",
]


async def test_odd_names(folder: Path, serve: Serve) -> None:
    for name in NAMES:
        (folder / name).write_text(name)
    drive = serve()
    items = await _items(drive)
    assert set(items) == set(NAMES)
    for name in NAMES:
        _, body = await drive.open(items[name])
        assert body.read(0, 1000) == name.encode()
        body.close()


async def test_what_is_no_file_is_left_out(
    folder: Path, serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "outside.txt").write_text("secret")
    (folder / "link.txt").symlink_to(tmp_path / "outside.txt")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    (Path(os.fsdecode(os.fsencode(folder) + b"/bad\xff"))).write_text("x")  # noqa: ASYNC240 - made here, in no time
    server = socket.socket(socket.AF_UNIX)
    monkeypatch.chdir(folder)  # the path of a socket must be short
    server.bind("socket")
    drive = serve()
    assert await _items(drive) == {}
    assert drive.left_out == {
        "link.txt": "it is a symbolic link",
        "loop": "it is a symbolic link",
        "pipe": "it is a pipe, a socket or a device",
        "bad\\xff": "its name is not UTF-8",
        "socket": "it is a pipe, a socket or a device",
    }
    server.close()


async def test_a_link_put_in_place_of_a_file_is_not_followed(
    folder: Path, serve: Serve, tmp_path: Path
) -> None:
    (tmp_path / "outside.txt").write_text("secret")
    (folder / "a.txt").write_text("x")
    drive = serve()
    item = (await _items(drive))["a.txt"]
    (folder / "a.txt").unlink()
    (folder / "a.txt").symlink_to(tmp_path / "outside.txt")
    with pytest.raises(GraphError) as refused:
        await drive.open(item)
    assert refused.value.status == 404


async def test_the_served_folder_vanishes_and_returns(folder: Path, serve: Serve) -> None:
    (folder / "a.txt").write_text("x")
    drive = serve()
    before = _as_told(await _items(drive))
    away = folder.with_name("away")
    shutil.move(folder, away)
    with pytest.raises(GraphError) as refused:
        await drive.refresh(at_once=True)
    assert refused.value.status == 503
    shutil.move(away, folder)
    assert _as_told(await _items(drive)) == before


async def test_a_folder_that_cannot_be_listed_keeps_what_was_known(
    folder: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "closed").mkdir()
    (folder / "closed" / "a.txt").write_text("x")
    drive = serve()
    before = await _items(drive)
    real = os.scandir

    def refusing(path: str) -> object:
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", path)
        return real(path)

    # The tests may run as root, whom no permission stops.
    monkeypatch.setattr("graphsim.scanning.os.scandir", refusing)
    assert await _items(drive) == before


async def test_a_pipe_put_in_place_of_a_file_holds_nothing_up(folder: Path, serve: Serve) -> None:
    (folder / "a.txt").write_text("x")
    _age(folder)
    drive = serve()
    item = (await _items(drive))["a.txt"]
    (folder / "a.txt").unlink()
    os.mkfifo(folder / "a.txt")
    async with asyncio.timeout(10):
        with pytest.raises(GraphError):
            await drive.open(item)


async def test_open_sees_an_edit_that_no_look_has_seen(folder: Path, serve: Serve) -> None:
    path = folder / "a.txt"
    path.write_text("one")
    _age(folder)
    drive = serve()
    item = (await _items(drive))["a.txt"]
    path.write_text("three")
    state, body = await drive.open(item)
    assert state.size == body.size == 5
    assert state.quickxor == hash_body(body)
    body.close()


def test_state_inside_of_the_folder_is_refused(folder: Path) -> None:
    with pytest.raises(OSError, match="lies inside"):
        _open(folder, folder / "state")


def test_a_second_server_of_the_same_state_is_refused(folder: Path, tmp_path: Path) -> None:
    first = _open(folder, tmp_path / "state")
    with pytest.raises(OSError, match="already serves"):
        _open(folder, tmp_path / "state")
    first.close()


_OPERATIONS = st.lists(
    st.tuples(st.sampled_from("wemrdDt"), st.integers(0, 30), st.integers(0, 30)), max_size=15
)


@settings(max_examples=40, deadline=None)
@given(operations=_OPERATIONS)
async def test_after_any_operations_the_drive_is_the_disk(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, int, int]]
) -> None:
    base = tmp_path_factory.mktemp("any")
    folder = base / "served"
    folder.mkdir()
    drive = _open(folder, base / "state")
    for what, which, where in operations:
        _operate(folder, what, which, where)
        if where % 2:
            items = await _items(drive)
            assert {p: i.quickxor for p, i in items.items()} == _on_disk(folder)
    items = await _items(drive)
    assert {p: i.quickxor for p, i in items.items()} == _on_disk(folder)
    assert drive.tree.total_size(drive.tree.root) == sum(i.size for i in items.values())
    drive.close()
    drive = _open(folder, base / "state")
    assert {p: i.id for p, i in (await _items(drive)).items()} == {
        p: i.id for p, i in items.items()
    }
    drive.close()


def _on_disk(folder: Path) -> dict[str, str | None]:
    return {
        str(path.relative_to(folder)): quickxor(path.read_bytes()) if path.is_file() else None
        for path in folder.rglob("*")
    }


def _operate(folder: Path, what: str, which: int, where: int) -> None:
    everything = sorted(folder.rglob("*"))
    folders = [folder, *(path for path in everything if path.is_dir())]
    target = folders[where % len(folders)] / f"n{which % 4}"
    one = everything[which % len(everything)] if everything else target
    if what == "w" and not target.is_dir():
        target.write_text(f"content {where % 4}")
    elif what == "D":
        target.mkdir(exist_ok=True) if not target.is_file() else None
    elif what == "e" and one.is_file():
        _save_like_an_editor(one, f"other {where % 4}")
    elif what in "mr" and one.exists() and not target.exists() and one not in target.parents:
        one.rename(target)
    elif what == "d" and one.is_file():
        one.unlink()
    elif what == "t" and one.is_dir():
        shutil.rmtree(one)


async def test_a_full_disk_loses_no_id(
    folder: Path, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = serve()
    await _items(drive)
    (folder / "a.txt").write_text("x")

    def full(_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(drive._shelf, "save", full)
        with pytest.raises(GraphError) as refused:
            await drive.refresh(at_once=True)
    assert refused.value.status == 503
    before = await _items(drive)
    assert {path: item.id for path, item in (await _items(serve())).items()} == {
        path: item.id for path, item in before.items()
    }


async def test_looks_are_not_taken_for_each_request(folder: Path, serve: Serve) -> None:
    (folder / "a.txt").write_text("x")
    drive = serve()
    await asyncio.gather(*(drive.refresh() for _ in range(50)))
    assert drive.looks == 1


async def test_a_folder_swapped_with_another(folder: Path, serve: Serve) -> None:
    for name in "ab":
        (folder / name).mkdir()
        (folder / name / f"in {name}.txt").write_text(name)
    drive = serve()
    before = await _items(drive)
    (folder / "a").rename(folder / "c")
    (folder / "b").rename(folder / "a")
    (folder / "c").rename(folder / "b")
    after = await _items(drive)
    assert after["a"].id == before["b"].id
    assert after["a/in b.txt"].id == before["b/in b.txt"].id
    assert after["b/in a.txt"].id == before["a/in a.txt"].id

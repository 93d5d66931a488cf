from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsim.clock import ManualClock, iso
from graphsim.cursors import Page, Wish
from graphsim.drives import MemoryDrive
from graphsim.errors import GraphError
from graphsim.items import Item, Kind, Profile
from graphsim.rendering import render_item, selected
from graphsim.seals import Seals


def _drive(profile: Profile = Profile.BUSINESS) -> MemoryDrive:
    return MemoryDrive("test", profile, Seals(b"secret"), ManualClock())


class _Mirror:
    """A client that does what the documentation says: last state wins, removal by id cascades."""

    def __init__(self) -> None:
        self.items: dict[str, Item] = {}
        self.link: str | None = None

    def take(self, page: Page) -> None:
        for item in page.items:
            if item.deleted:
                self._remove(item.id)
            else:
                self.items[item.id] = item
        self.link = page.token

    def _remove(self, identifier: str) -> None:
        self.items.pop(identifier, None)
        for child in [one.id for one in self.items.values() if one.parent_id == identifier]:
            self._remove(child)

    def facts(self) -> dict[str, tuple[str | None, str, str | None]]:
        return {item.id: (item.parent_id, item.name, item.quickxor) for item in self.items.values()}


def _truth(drive: MemoryDrive) -> dict[str, tuple[str | None, str, str | None]]:
    return {item.id: (item.parent_id, item.name, item.quickxor) for item in drive.tree.walk()}


def _finish(drive: MemoryDrive, mirror: _Mirror, limit: int, wish: Wish = Wish()) -> None:  # noqa: B008
    while True:
        page = drive.rounds.page(mirror.link, wish, limit)
        mirror.take(page)
        if page.is_last:
            return


def _mutate(drive: MemoryDrive, what: int, which: int, where: int) -> None:
    live = [item for item in drive.tree.walk() if item.parent_id]
    folders = [item for item in drive.tree.walk() if item.kind is Kind.FOLDER]
    graves = [
        item
        for item in drive.tree.items.values()
        if item.deleted and item.deleted_top and drive.tree.live(item.parent_id or "")
    ]
    target = folders[where % len(folders)].id
    item = live[which % len(live)] if live else drive.create_folder("first")
    if what == 0:
        drive.create_file(f"f{which}", f"content {which % 3}".encode(), target)
    elif what == 1:
        drive.create_folder(f"d{which}", target)
    elif what == 2 and item.kind is Kind.FILE:
        drive.replace(item.id, f"content {where % 3}".encode())
    elif what == 3:
        drive.rename(item.id, f"n{where}")
    elif what == 4:
        with contextlib.suppress(ValueError):  # a folder can't go below itself
            drive.move(item.id, target)
    elif what == 5:
        drive.delete(item.id)
    elif what == 6 and graves:
        drive.restore(graves[which % len(graves)].id)


_STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50), st.integers(0, 50)), max_size=40)


@settings(max_examples=150, deadline=None)
@given(steps=_STEPS, limit=st.integers(1, 5), descendants=st.booleans(), quiet=st.booleans())
def test_following_the_links_over_any_mutations_ends_at_the_truth(
    steps: list[tuple[int, int, int]], limit: int, *, descendants: bool, quiet: bool
) -> None:
    drive, mirror = _drive(), _Mirror()
    drive.quirks.descendant_tombstones = descendants
    wish = Wish(exclude_parents=quiet)
    for what, which, where in steps:
        if what <= 6:
            _mutate(drive, what, which, where)
        elif what == 9:
            drive.rounds.forget_open_rounds()
        else:
            mirror.take(drive.rounds.page(mirror.link, wish, limit))
    _finish(drive, mirror, limit, wish)
    _finish(drive, mirror, limit, wish)
    assert mirror.facts() == _truth(drive)


def test_what_came_into_a_folder_since_and_went_with_it_is_reported_by_itself() -> None:
    drive, mirror = _drive(), _Mirror()
    drive.quirks.descendant_tombstones = False
    folder = drive.create_folder("folder")
    known = drive.create_file("known", b"1", folder.id)
    moved = drive.create_file("moved", b"2")
    _finish(drive, mirror, 5)
    drive.move(moved.id, folder.id)
    drive.delete(folder.id)
    page = drive.rounds.page(mirror.link, Wish(), 5)
    assert {one.id for one in page.items if one.deleted} == {folder.id, moved.id}
    mirror.take(page)
    assert mirror.items.keys().isdisjoint({folder.id, known.id, moved.id})


def test_a_crawl_shows_one_moment_and_the_next_round_what_came_meanwhile() -> None:
    drive, mirror = _drive(), _Mirror()
    first = drive.create_folder("first")
    inside = drive.create_file("inside", b"1", first.id)
    drive.create_file("last", b"2")
    before = _truth(drive)
    mirror.take(drive.rounds.page(None, Wish(), 1))
    drive.delete(first.id)
    late = drive.create_file("late", b"3")
    _finish(drive, mirror, 1)
    assert mirror.facts() == before
    _finish(drive, mirror, 1)
    assert mirror.facts() == _truth(drive)
    assert late.id in mirror.items
    assert inside.id not in mirror.items


def test_a_round_that_was_lost_begins_again_and_misses_nothing() -> None:
    drive, mirror = _drive(), _Mirror()
    files = [drive.create_file(name, b"") for name in "abc"]
    for _ in range(2):
        mirror.take(drive.rounds.page(mirror.link, Wish(), 1))
    drive.delete(files[0].id)
    drive.rounds.forget_open_rounds()
    _finish(drive, mirror, 1)
    assert {file.id for file in files} <= mirror.items.keys()
    _finish(drive, mirror, 1)
    assert mirror.facts() == _truth(drive)


def test_a_change_comes_with_its_parents_the_root_first() -> None:
    drive = _drive()
    outer = drive.create_folder("outer")
    inner = drive.create_folder("inner", outer.id)
    drive.create_file("other", b"")
    token = drive.rounds.page("latest", Wish(), 10).token
    file = drive.create_file("file", b"x", inner.id)
    ids = [item.id for item in drive.rounds.page(token, Wish(), 10).items]
    assert ids == [drive.tree.root_id, outer.id, inner.id, file.id]
    quiet = drive.rounds.page(token, Wish(exclude_parents=True), 10).items
    assert [item.id for item in quiet] == [drive.tree.root_id, file.id]


def test_latest_is_empty_and_then_reports_only_what_came_later() -> None:
    drive = _drive()
    drive.create_file("old", b"")
    page = drive.rounds.page("latest", Wish(), 10)
    assert page.items == []
    assert page.is_last
    assert drive.rounds.page(page.token, Wish(), 10).items == []


def test_only_the_latest_state_of_an_item_is_reported() -> None:
    drive = _drive()
    file = drive.create_file("a", b"1")
    token = drive.rounds.page("latest", Wish(), 10).token
    drive.rename(file.id, "b")
    drive.replace(file.id, b"2")
    drive.rename(file.id, "c")
    states = [one for one in drive.rounds.page(token, Wish(), 10).items if one.id == file.id]
    assert [one.name for one in states] == ["c"]


def test_a_time_is_a_token_on_business_drives_only() -> None:
    clock = ManualClock()
    business = MemoryDrive("b", Profile.BUSINESS, Seals(b"s"), clock)
    personal = MemoryDrive("p", Profile.PERSONAL, Seals(b"s"), clock)
    business.create_file("old", b"")
    clock.advance(60)
    moment = iso(clock.now())
    clock.advance(60)
    new = business.create_file("new", b"")
    ids = [item.id for item in business.rounds.page(moment, Wish(), 10).items]
    assert ids == [business.tree.root_id, new.id]
    with pytest.raises(GraphError) as refused:
        personal.rounds.page(moment, Wish(), 10)
    assert refused.value.status == 400


def test_tokens_of_an_earlier_epoch_ask_for_a_new_enumeration() -> None:
    drive = _drive()
    token = drive.rounds.page("latest", Wish(), 10).token
    drive.expire_tokens()
    with pytest.raises(GraphError) as refused:
        drive.rounds.page(token, Wish(), 10)
    assert (refused.value.status, refused.value.code) == (410, "resyncRequired")


@pytest.mark.parametrize("token", ["made-up", "AAAA", "x" * 200])
def test_a_token_that_was_never_given_is_refused(token: str) -> None:
    with pytest.raises(GraphError) as refused:
        _drive().rounds.page(token, Wish(), 10)
    assert refused.value.status == 400


def test_a_token_of_another_drive_is_refused() -> None:
    one = MemoryDrive("one", Profile.BUSINESS, Seals(b"s"), ManualClock())
    two = MemoryDrive("two", Profile.BUSINESS, Seals(b"s"), ManualClock())
    token = one.rounds.page("latest", Wish(), 10).token
    with pytest.raises(GraphError):
        two.rounds.page(token, Wish(), 10)


def test_the_scope_of_a_folder_is_remembered_by_its_token() -> None:
    drive = _drive()
    inside = drive.create_folder("inside")
    page = drive.rounds.page(None, Wish(scope=inside.id), 10)
    assert [item.id for item in page.items] == [inside.id]
    drive.create_file("elsewhere", b"")
    file = drive.create_file("here", b"", inside.id)
    ids = [item.id for item in drive.rounds.page(page.token, Wish(), 10).items]
    assert ids == [inside.id, file.id]


def _rendered(drive: MemoryDrive, item: Item, select: str | None = None) -> dict[str, Any]:
    shown = render_item(drive, item, lambda one: f"https://x.invalid/{one.id}", in_delta=True)
    return selected(shown, select)


def test_tombstones_have_the_documented_fields() -> None:
    for profile, absent, present in (
        (Profile.BUSINESS, {"cTag", "name"}, {"id", "deleted", "parentReference"}),
        (Profile.PERSONAL, {"cTag", "size"}, {"id", "deleted", "name", "parentReference"}),
    ):
        drive = _drive(profile)
        file = drive.create_file("gone.txt", b"x")
        shown = _rendered(drive, drive.delete(file.id))
        assert not absent & shown.keys()
        assert present <= shown.keys()
        drive.quirks.tombstone_fields = "id_only"
        assert _rendered(drive, drive.tree.items[file.id]) == {"id": file.id, "deleted": {}}


def test_a_select_drops_what_it_does_not_name() -> None:
    drive = _drive()
    file = drive.create_file("a.txt", b"x")
    assert _rendered(drive, file, "id,name").keys() == {"id", "name"}
    assert "@microsoft.graph.downloadUrl" in _rendered(drive, file, "id,content.downloadUrl")
    assert _rendered(drive, drive.delete(file.id), "id,name") == {"id": file.id}


def test_the_fields_of_the_profiles() -> None:
    for profile, has_ctag, has_path in (
        (Profile.BUSINESS, False, False),
        (Profile.DOCUMENT_LIBRARY, False, False),
        (Profile.PERSONAL, True, True),
    ):
        drive = _drive(profile)
        folder = drive.create_folder("an ä folder")
        shown = _rendered(drive, drive.create_file("a.txt", b"x", folder.id))
        assert ("cTag" in shown) == has_ctag
        assert ("path" in shown["parentReference"]) == has_path
        assert shown["file"]["hashes"]["quickXorHash"]
        assert shown["parentReference"]["driveType"] == profile.value


def test_folder_sizes_follow_every_mutation() -> None:
    drive = _drive()
    outer = drive.create_folder("outer")
    inner = drive.create_folder("inner", outer.id)
    file = drive.create_file("file", b"12345", inner.id)
    tree = drive.tree
    assert tree.total_size(tree.root) == tree.total_size(tree.items[outer.id]) == 5
    drive.move(inner.id, None)
    assert tree.total_size(tree.items[outer.id]) == 0
    drive.replace(file.id, b"123")
    assert tree.total_size(tree.root) == 3
    drive.delete(inner.id)
    assert tree.total_size(tree.root) == 0
    drive.restore(inner.id)
    assert tree.total_size(tree.root) == tree.total_size(tree.items[inner.id]) == 3

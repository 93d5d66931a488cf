"""What a page of changes means for the shadow tree, and when removals stop and ask."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.domain.delta import TreeItem, braked, plan_page
from drivefeed.domain.remote import ItemKind, RemoteItem

_OLD = TreeItem(
    "f",
    parent_id="p",
    name="a.txt",
    kind=ItemKind.FILE,
    size=10,
    media_type="text/plain",
    etag="e1",
    quick_xor="h1",
    created_at=1,
    modified_at=2,
    web_url="https://x/a",
    generation=1,
    version_key="quickxor:h1",
)


def _told(**changes: Any) -> RemoteItem:
    values: dict[str, Any] = {
        "item_id": "f",
        "parent_id": "p",
        "name": "a.txt",
        "kind": ItemKind.FILE,
        "size": 10,
        "media_type": "text/plain",
        "etag": "e1",
        "quick_xor": "h1",
        "created_at": 1,
        "modified_at": 2,
        "web_url": "https://x/a",
    }
    return RemoteItem(**(values | changes))


def _after(*items: RemoteItem, old: TreeItem | None = _OLD, generation: int = 2) -> TreeItem:
    known = {old.item_id: old} if old else {}
    (row,) = plan_page(items, known, generation=generation).rows
    return row


def test_a_new_item_is_stamped_and_calls_for_a_decision() -> None:
    row = _after(_told(), old=None)
    assert row == replace(_OLD, generation=2, dirty=True)


def test_an_item_that_did_not_change_calls_for_none_and_is_seen() -> None:
    plan = plan_page([_told()], {"f": _OLD}, generation=2)
    assert plan.rows == (replace(_OLD, generation=2),)
    assert plan.fresh == frozenset()


@pytest.mark.parametrize("was_own", [True, False])
def test_permissions_are_asked_for_again_when_a_page_of_changes_tells_an_item(
    was_own: bool,  # noqa: FBT001
) -> None:
    old = replace(_OLD, own_permissions=was_own)
    (row,) = plan_page([_told()], {"f": old}, generation=2, tells_changes=True).rows
    assert (row.own_permissions, row.dirty, row.version_key) == (None, True, _OLD.version_key)


def test_a_full_listing_says_nothing_of_permissions_unless_an_item_is_another() -> None:
    old = replace(_OLD, own_permissions=True, shared=False)
    assert _after(_told(shared=False), old=old).own_permissions is True
    assert not _after(_told(shared=False), old=old).dirty
    for changes in ({"shared": True}, {"shared": False, "etag": "e2"}):
        row = _after(_told(**changes), old=old)
        assert (row.own_permissions, row.dirty) == (None, True)


def test_the_last_occurrence_of_an_id_wins() -> None:
    row = _after(_told(name="b.txt"), _told(name="c.txt", quick_xor="h3", etag="e3"))
    assert (row.name, row.version_key, row.dirty) == ("c.txt", "quickxor:h3", True)


def test_changed_and_changed_back_within_a_page_is_the_old_version_and_decided_again() -> None:
    row = _after(_told(quick_xor="h2", etag="e2"), _told(etag="e3"))
    assert (row.version_key, row.dirty) == ("quickxor:h1", True)


def test_deleted_and_restored_within_a_page_lives() -> None:
    row = _after(RemoteItem("f", deleted=True), _told())
    assert (row.deleted, row.dirty, row.version_key) == (False, True, "quickxor:h1")


def test_restored_and_deleted_within_a_page_is_deleted() -> None:
    assert _after(_told(), RemoteItem("f", deleted=True)).deleted


def test_a_tombstone_with_nothing_but_an_id_keeps_what_was_known() -> None:
    row = _after(RemoteItem("f", deleted=True))
    assert row == replace(_OLD, deleted=True, dirty=True, generation=2)


def test_a_tombstone_of_an_unknown_item_writes_nothing() -> None:
    assert plan_page([RemoteItem("ghost", deleted=True)], {}, generation=1).rows == ()


def test_a_second_tombstone_writes_nothing() -> None:
    gone = replace(_OLD, deleted=True)
    assert plan_page([RemoteItem("f", deleted=True)], {"f": gone}, generation=2).rows == ()


def test_a_restored_item_is_decided_again_with_its_old_version() -> None:
    row = _after(_told(etag="e9"), old=replace(_OLD, deleted=True))
    assert (row.deleted, row.dirty, row.version_key) == (False, True, "quickxor:h1")


def test_an_answer_that_tells_only_the_id_changes_nothing() -> None:
    assert _after(RemoteItem("f")) == replace(_OLD, generation=2)


@pytest.mark.parametrize(
    "left_out",
    [
        "parent_id",
        "name",
        "size",
        "media_type",
        "etag",
        "quick_xor",
        "created_at",
        "modified_at",
        "web_url",
    ],
)
def test_what_an_answer_leaves_out_is_as_before(left_out: str) -> None:
    assert _after(_told(**{left_out: None})) == replace(_OLD, generation=2)


def test_left_out_facets_do_not_make_a_file_an_unknown_thing() -> None:
    assert _after(_told(kind=ItemKind.UNKNOWN)).kind is ItemKind.FILE


@pytest.mark.parametrize(
    "change",
    [
        {"parent_id": "q"},
        {"name": "b.txt"},
        {"kind": ItemKind.SHORTCUT},
        {"quick_xor": "h2"},
        {"quick_xor": None, "etag": "e2"},
        {"size": 11},
        {"modified_at": 3},
        {"malware": True},
    ],
)
def test_these_changes_of_a_file_call_for_a_decision(change: dict[str, Any]) -> None:
    assert _after(_told(**change)).dirty


@pytest.mark.parametrize(
    "change", [{"etag": "e2"}, {"web_url": "https://y"}, {"media_type": "text/html"}]
)
def test_these_do_not(change: dict[str, Any]) -> None:
    row = _after(_told(**change))
    assert not row.dirty
    assert row.version_key == "quickxor:h1"


def test_a_folder_whose_content_changed_calls_for_none() -> None:
    old = replace(_OLD, kind=ItemKind.FOLDER, quick_xor=None, version_key="etag:e1")
    told = _told(kind=ItemKind.FOLDER, quick_xor=None, etag="e2", size=99, modified_at=99)
    assert not _after(told, old=old).dirty


def test_a_decision_that_is_due_stays_due() -> None:
    assert _after(_told(), old=replace(_OLD, dirty=True)).dirty


def test_a_hash_that_appears_later_is_kept_and_is_no_new_version() -> None:
    old = replace(_OLD, quick_xor=None, version_key="etag:e1")
    row = _after(_told(), old=old)
    assert (row.quick_xor, row.version_key, row.dirty) == ("h1", "etag:e1", False)


def test_a_version_without_a_hash_does_not_inherit_the_old_one() -> None:
    row = _after(_told(quick_xor=None, etag="e2"))
    assert (row.quick_xor, row.version_key) == (None, "etag:e2")


_ANY = st.builds(
    RemoteItem,
    item_id=st.sampled_from("abc"),
    parent_id=st.sampled_from([None, "p", "q"]),
    name=st.sampled_from([None, "n", "m"]),
    kind=st.sampled_from([ItemKind.FILE, ItemKind.FOLDER, ItemKind.UNKNOWN]),
    etag=st.sampled_from([None, "e1", "e2"]),
    quick_xor=st.sampled_from([None, "h1", "h2"]),
    deleted=st.booleans(),
)


@given(st.lists(_ANY, max_size=8), st.data())
def test_where_a_page_is_cut_does_not_matter(items: list[RemoteItem], data: st.DataObject) -> None:
    whole = {row.item_id: row for row in plan_page(items, {}, generation=1).rows}
    known: dict[str, TreeItem] = {}
    rest = items
    while rest:
        cut = data.draw(st.integers(1, len(rest)))
        for row in plan_page(rest[:cut], known, generation=1).rows:
            known[row.item_id] = row
        rest = rest[cut:]
    assert known == whole


@given(st.lists(_ANY, max_size=8))
def test_a_page_that_is_applied_twice_says_the_same(items: list[RemoteItem]) -> None:
    once = {row.item_id: row for row in plan_page(items, {}, generation=1).rows}
    last = {item.item_id: item for item in items}
    twice = plan_page(last.values(), once, generation=1)
    assert {row.item_id: row.deleted for row in twice.rows}.items() <= {
        key: row.deleted for key, row in once.items()
    }.items()


@pytest.mark.parametrize(
    ("removals", "documents", "stops"),
    [
        (0, 0, False),
        (0, 1_000, False),
        (50, 1_000, False),
        (51, 1_000, True),
        (51, 200, True),
        (1, 1, False),  # below the floor
        (9, 9, False),
        (10, 10, True),
        (10, 50, False),  # exactly 20 %
        (11, 50, True),
    ],
)
def test_the_brake(removals: int, documents: int, *, stops: bool) -> None:
    assert braked(removals=removals, documents=documents, count=50, percent=20, floor=10) is stops

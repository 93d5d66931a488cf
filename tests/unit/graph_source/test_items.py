import json
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.domain.errors import NeedsAttention, Transient
from drivefeed.domain.remote import ItemKind, RemoteItem
from drivefeed.sources.graph import items
from drivefeed.sources.graph.items import item_of, page_of

BASE = "https://graph.microsoft.com/v1.0"
NEXT = f"{BASE}/drives/d/root/delta?token=next"
DELTA = f"{BASE}/drives/d/root/delta?token=delta"


def read(**fields: Any) -> RemoteItem:
    item = item_of(json.dumps(fields).encode())
    assert item is not None
    return item


def page(*items: Any, **links: Any) -> bytes:
    links = links or {"deltaLink": DELTA}
    return json.dumps(
        {"value": list(items)} | {f"@odata.{name}": link for name, link in links.items()}
    ).encode()


def test_a_whole_file() -> None:
    assert read(
        id="01A", name="a.docx", size=12, eTag='"{G},1"', cTag='"c:{G},1"', webUrl="https://x/a",
        file={"mimeType": "application/x", "hashes": {"quickXorHash": "AAA="}},
        parentReference={"id": "01P", "driveId": "b!d", "path": "/drive/root:"},
        createdDateTime="2020-01-01T00:00:00Z",
        fileSystemInfo={"lastModifiedDateTime": "2020-01-02T00:00:00.1234567Z"},
        lastModifiedDateTime="2021-01-01T00:00:00Z", surprise=[{}],
    ) == RemoteItem(
        "01A", parent_id="01P", name="a.docx", kind=ItemKind.FILE, size=12,
        media_type="application/x", etag='"{G},1"', ctag='"c:{G},1"', quick_xor="AAA=",
        created_at=1_577_836_800_000, modified_at=1_577_923_200_123, web_url="https://x/a",
            shared=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("facets", "kind"),
    [
        ({"file": {}}, ItemKind.FILE),
        ({"folder": {"childCount": 0}}, ItemKind.FOLDER),
        ({"root": {}, "folder": {}}, ItemKind.ROOT),
        ({"package": {"type": "oneNote"}}, ItemKind.PACKAGE),
        ({"package": {"type": "oneNote"}, "folder": {}}, ItemKind.PACKAGE),
        ({"remoteItem": {"id": "x", "folder": {}}, "folder": {}}, ItemKind.SHORTCUT),
        ({"bundle": {"childCount": 3}, "folder": {}}, ItemKind.UNKNOWN),
        ({"folder": {}, "file": {}}, ItemKind.FOLDER),
        ({"folder": None, "file": {"hashes": None}}, ItemKind.FILE),
        ({}, ItemKind.UNKNOWN),
    ],
)
def test_what_an_item_is(facets: dict[str, Any], kind: ItemKind) -> None:
    assert read(id="1", **facets).kind is kind


@pytest.mark.parametrize(
    ("fields", "deleted"),
    [
        ({"deleted": {"state": "deleted"}}, True),
        ({"deleted": {}}, True),
        ({"@removed": {"reason": "deleted"}}, True),
        ({"deleted": None}, False),
        ({"deleted": False}, False),
        ({}, False),
    ],
)
def test_tombstones(fields: dict[str, Any], deleted: bool) -> None:  # noqa: FBT001
    assert read(id="1", **fields).deleted is deleted


def test_a_bare_tombstone() -> None:
    item = read(id="1", deleted={}, lastModifiedDateTime="0001-01-01T00:00:00Z")
    assert item == RemoteItem("1", deleted=True)


def test_sharing_and_the_number_of_children_are_read() -> None:
    assert read(id="1", file={}, shared={"scope": "users"}).shared is True
    assert read(id="1", file={}, shared={}).shared is True
    assert read(id="1", file={}).shared is False
    assert read(id="1", deleted={}).shared is None
    assert read(id="1", folder={"childCount": 3}).child_count == 3
    assert read(id="1", folder={}).child_count is None
    assert read(id="1", folder={"childCount": "many"}).child_count is None
    assert read(id="1", file={}).child_count is None


def test_malware_is_marked_by_an_empty_facet() -> None:
    assert read(id="1", file={}, malware={}).malware


@pytest.mark.parametrize(
    "size", ["-1", "9223372036854775808", "1e400", '"12"', "null", "[]", "1" + "0" * 5000]
)
def test_impossible_sizes_count_as_missing(size: str) -> None:
    item = item_of(b'{"id":"1","file":{},"size":%s}' % size.encode())
    assert item is not None
    assert (item.size, item.kind) == (None, ItemKind.FILE)


@pytest.mark.parametrize(
    "odd",
    [
        {"name": 7},
        {"eTag": {}},
        {"fileSystemInfo": "yesterday"},
        {"fileSystemInfo": {"lastModifiedDateTime": "yesterday"}},
        {"lastModifiedDateTime": "99999-01-01T00:00:00Z"},
        {"webUrl": []},
    ],
)
def test_an_odd_field_is_left_out_and_the_rest_is_kept(odd: dict[str, Any]) -> None:
    item = read(id="1", file={}, parentReference={"id": "P"}, **odd)
    assert (item.kind, item.parent_id) == (ItemKind.FILE, "P")
    assert item.modified_at is None


@pytest.mark.parametrize("odd", [{"file": "yes"}, {"parentReference": "/root"}, {"file": [1]}])
def test_an_item_that_cannot_be_understood_is_unknown_by_its_id(odd: dict[str, Any]) -> None:
    item = read(**({"id": "1", "file": {}} | odd))
    assert (item.item_id, item.kind) == ("1", ItemKind.UNKNOWN)


def test_strings_that_are_no_utf8_are_kept_writable() -> None:
    for raw in (
        b'{"id":"1","file":{},"name":"a\xff.txt"}',
        b'{"id":"1","file":{},"name":"a\\ud800.txt"}',
        b'{"id":"1","file":{},"name":"a\\u0000.txt"}',
    ):
        item = item_of(raw)
        assert item is not None
        assert item.name is not None
        assert item.name.encode().startswith(b"a")
        assert "\x00" not in item.name


ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)
FIELDS = [
    "name", "size", "file", "folder", "package", "remoteItem", "bundle", "root", "deleted",
    "malware", "parentReference", "fileSystemInfo", "webUrl", "eTag", "cTag", "createdDateTime",
]  # fmt: skip


@given(st.lists(st.dictionaries(st.sampled_from(FIELDS), ANY, max_size=6), max_size=4))
def test_no_item_however_odd_loses_the_page(odd: list[dict[str, Any]]) -> None:
    items = [fields | {"id": f"odd{number}"} for number, fields in enumerate(odd)]
    found = page_of(page(*items, {"id": "sound", "file": {}}), BASE).items
    assert [item.item_id for item in found] == [*(item["id"] for item in items), "sound"]


def test_items_without_an_id_are_passed_over_and_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    # One that was used already may keep what a command of another test had it write to.
    monkeypatch.setattr(items, "_log", structlog.get_logger())
    odd = [{"name": "x"}, None, 7, [], {"id": 5}, {"id": ""}, {"id": "a" * 201}, {"id": "a\x00"}]
    with structlog.testing.capture_logs() as said:
        found = page_of(page(*odd, {"id": "1", "parentReference": {"id": "b\x00"}}), BASE)
    assert [(item.item_id, item.parent_id) for item in found.items] == [("1", None)]
    assert [(one["event"], one["passed_over"]) for one in said] == [
        ("items_without_usable_id", len(odd))
    ]


def test_links() -> None:
    assert page_of(page(nextLink=NEXT), BASE).next_link == NEXT
    assert page_of(page(deltaLink=DELTA), BASE).delta_link == DELTA
    both = page_of(page(nextLink=NEXT, deltaLink=DELTA), BASE)
    assert (both.next_link, both.delta_link) == (NEXT, None), "ending early could remove files"
    nulled = page_of(page(nextLink=None, deltaLink=DELTA), BASE)
    assert nulled.delta_link == DELTA


def test_an_empty_page_with_a_next_link_goes_on() -> None:
    assert page_of(page(nextLink=NEXT), BASE).items == ()


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"value":null}', b'{"value":7}', page(x="y"), page()[:-9]],
)
def test_what_is_no_page_is_tried_again(body: bytes) -> None:
    with pytest.raises(Transient):
        page_of(body, BASE)


@pytest.mark.parametrize("link", ["https://evil.example/delta", 7, {"href": NEXT}])
def test_a_page_whose_link_leads_elsewhere_is_refused_whole(link: Any) -> None:
    with pytest.raises(NeedsAttention):
        page_of(page({"id": "1"}, nextLink=link), BASE)

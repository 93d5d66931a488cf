"""Names that must never change by accident are pinned literally."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.domain.identity import (
    Fingerprint,
    changed,
    document_id,
    drive_key,
    idempotency_key,
    import_id,
    index_job_id,
    job_id,
    object_key,
    point_id,
    version_key,
)
from drivefeed.domain.remote import RemoteItem


def test_derived_ids_are_what_they_always_were() -> None:
    assert document_id("org", "drive", "global:b!x/item") == "54f92dd3-182c-5fd9-8250-bb520f1aab5d"
    assert (
        import_id("org", "drive", "global:b!x/item", "quickxor:h")
        == "1365484c-9f10-5fe5-a032-c45f41854f69"
    )
    assert point_id("IMPORT", 2, 7) == "ea492f16-9ed6-5b9a-8330-74acf1a95aa5"
    assert index_job_id("IMPORT:2") == "897a6143-67e5-5d1f-8687-49860ffbffed"


def test_names_of_effects_carry_import_and_round() -> None:
    assert object_key("org", "doc", "imp", 3) == "org/doc/imp/3"
    assert idempotency_key("imp", 3) == "imp:3"
    assert job_id("transfer", "imp", 4) == "transfer-imp-4"
    assert ":" not in job_id("transfer", import_id("o", "drive", "k", "v"), 1)


@pytest.mark.parametrize(
    ("spelled", "key"),
    [
        ("b!Q_caseMatters", "global:b!Q_caseMatters"),
        ("0123456789ABCDEF", "global:0123456789abcdef"),
        ("123456789abcdef", "global:0123456789abcdef"),
        ("ABC", "global:0000000000000abc"),
    ],
)
def test_a_drive_has_one_spelling(spelled: str, key: str) -> None:
    assert drive_key("global", spelled) == key


def test_clouds_do_not_share_drives() -> None:
    assert drive_key("global", "b!x") != drive_key("china", "b!x")


@given(st.lists(st.text("ab\\/:", min_size=1), min_size=3, max_size=3), st.integers(0, 2))
def test_different_parts_make_different_ids(parts: list[str], which: int) -> None:
    other = list(parts)
    other[which] += "x"
    assert document_id(*parts) != document_id(*other)
    assert document_id(*parts) != import_id(*parts, "v")


@pytest.mark.parametrize(
    ("old", "new", "is_change"),
    [
        (("h", "e"), ("h", "e"), False),
        (("h", "e"), ("h", "e2"), False),  # renamed: the eTag changes, the bytes do not
        (("h", "e"), ("h2", "e"), True),
        ((None, "e"), ("h", "e"), False),  # the hash was computed later
        (("h", "e"), (None, "e"), False),
        (("h", "e"), (None, "e2"), True),
        ((None, "e"), (None, "e2"), True),
        (("h", "e"), (None, None), False),  # the answer tells nothing
    ],
)
def test_what_counts_as_a_change(
    old: tuple[str | None, str | None], new: tuple[str | None, str | None], *, is_change: bool
) -> None:
    assert changed(Fingerprint(*old), Fingerprint(*new)) is is_change


def test_without_hash_and_etag_size_and_time_decide() -> None:
    old = Fingerprint(None, None, size=10, modified_at=5)
    assert changed(old, Fingerprint(None, None, size=11, modified_at=5))
    assert changed(old, Fingerprint(None, None, size=10, modified_at=6))
    assert not changed(old, Fingerprint(None, None, size=10, modified_at=5))
    assert not changed(old, Fingerprint(None, None, size=None, modified_at=None))


def test_an_empty_hash_is_no_hash() -> None:
    assert Fingerprint.of(RemoteItem("i", quick_xor="", etag="e")) == Fingerprint(None, "e")


def test_version_keys_prefer_the_hash() -> None:
    assert version_key(RemoteItem("i", quick_xor="h", etag="e")) == "quickxor:h"
    assert version_key(RemoteItem("i", etag="e")) == "etag:e"
    assert version_key(RemoteItem("i", modified_at=5, size=6)) == "listed:5:6"

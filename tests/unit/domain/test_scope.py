"""Which files a connection admits, and which reason wins where several hold."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.domain.delta import TreeItem
from drivefeed.domain.model import Policy
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import ItemKind
from drivefeed.domain.scope import READABLE_TYPES, Place, ending, skip_reason

_FILE = TreeItem("i", name="a.txt", kind=ItemKind.FILE, size=10, modified_at=1_000)


def _reason(path: str, policy: Policy, item: TreeItem = _FILE) -> Reason | None:
    *folders, name = path.split("/")
    return skip_reason(replace(item, name=name), Place(tuple(folders), name), policy)


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("*.txt", "a.txt", True),
        ("*.txt", "deep/down/a.txt", True),
        ("*.TXT", "deep/A.txt", True),
        ("a.?xt", "a.txt", True),
        ("a?txt", "a/txt", False),
        ("*", "deep/a.txt", True),
        ("a", "a.txt", False),
        ("/a.txt", "a.txt", True),
        ("/a.txt", "deep/a.txt", False),
        ("deep/*.txt", "deep/a.txt", True),
        ("deep/*.txt", "deep/down/a.txt", False),
        ("deep/**", "deep/down/a.txt", True),
        ("deep/**/a.txt", "deep/a.txt", True),
        ("deep/**/a.txt", "deep/x/y/a.txt", True),
        ("**/down/*.txt", "deep/down/a.txt", True),
        ("**/down/*.txt", "down/a.txt", True),
        ("**/down/*.txt", "updown/a.txt", False),
        ("drafts/", "drafts/a.txt", True),
        ("drafts/", "deep/drafts/x/a.txt", True),
        ("drafts/", "drafts.txt", False),
        ("/drafts/", "deep/drafts/a.txt", False),
        ("[a].txt", "[a].txt", True),
        ("[a].txt", "a.txt", False),
        ("a.txt", "a.txt\n", False),
        ("*.txt", "line\nbreak.txt", True),
        ("deep/**", "deep/line\nbreak/a.txt", True),
        ("a+(b).txt", "a+(b).txt", True),
        ("100%.txt", "100%.txt", True),
        ("é.txt", "e\u0301.txt", True),
        ("e\u0301.txt", "é.txt", True),
        ("😀.txt", "x/😀.txt", True),
    ],
)
def test_globs(pattern: str, path: str, *, matches: bool) -> None:
    anything = Policy(types=(ending(path.rsplit("/", 1)[-1]),))
    excluded = _reason(path, replace(anything, exclude=(pattern,)))
    assert (excluded is Reason.EXCLUDED_BY_FILTER) is matches
    included = _reason(path, replace(anything, include=(pattern,)))
    assert (included is not Reason.NOT_INCLUDED_BY_FILTER) is matches


@given(
    st.text(min_size=1).filter(lambda name: "/" not in name),
    st.text("*?[](){}+.^$|\\é", max_size=8),
)
def test_no_name_and_no_pattern_breaks_a_filter(name: str, pattern: str) -> None:
    _reason(name, Policy(include=(pattern,), exclude=(f"x/{pattern}/",)))
    assert _reason(f"x/{name}", Policy(exclude=("**",))) is Reason.EXCLUDED_BY_FILTER


def test_an_exclude_wins_over_an_include() -> None:
    policy = Policy(include=("*.txt",), exclude=("a.*",))
    assert _reason("a.txt", policy) is Reason.EXCLUDED_BY_FILTER
    assert _reason("b.txt", policy) is None


def test_reasons_in_their_order() -> None:
    """Each repair uncovers the next reason, until the file is admitted."""
    policy = Policy(
        subfolders=False,
        include=("keep.*",),
        exclude=("*.exe",),
        types=("txt",),
        max_bytes=100,
        modified_since=500,
    )
    bad = replace(_FILE, kind=ItemKind.SHORTCUT, malware=True, size=0, modified_at=1)
    assert _reason("sub/lose.exe", policy, bad) is Reason.SHORTCUT
    bad = replace(bad, kind=ItemKind.FILE)
    assert _reason("sub/lose.exe", policy, bad) is Reason.MALWARE
    bad = replace(bad, malware=False)
    assert _reason("sub/lose.exe", policy, bad) is Reason.IN_SUBFOLDER
    assert _reason("lose.exe", policy, bad) is Reason.NOT_INCLUDED_BY_FILTER
    assert _reason("keep.exe", policy, bad) is Reason.EXCLUDED_BY_FILTER
    assert _reason("keep.pdf", policy, bad) is Reason.TYPE_NOT_INCLUDED
    assert _reason("keep.txt", policy, bad) is Reason.EMPTY_FILE
    bad = replace(bad, size=101)
    assert _reason("keep.txt", policy, bad) is Reason.LARGER_THAN_LIMIT
    bad = replace(bad, size=100)
    assert _reason("keep.txt", policy, bad) is Reason.OLDER_THAN_LIMIT
    bad = replace(bad, modified_at=500)
    assert _reason("keep.txt", policy, bad) is None


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (ItemKind.ROOT, Reason.NOT_A_FILE),
        (ItemKind.FOLDER, Reason.NOT_A_FILE),
        (ItemKind.PACKAGE, Reason.PACKAGE),
        (ItemKind.SHORTCUT, Reason.SHORTCUT),
        (ItemKind.UNKNOWN, Reason.UNKNOWN_KIND),
    ],
)
def test_only_files_are_files(kind: ItemKind, reason: Reason) -> None:
    assert _reason("a.txt", Policy(), replace(_FILE, kind=kind)) is reason


def test_unknown_size_and_time_are_no_reason_to_skip() -> None:
    item = replace(_FILE, size=None, modified_at=None)
    assert _reason("a.txt", Policy(max_bytes=1, modified_since=10**15), item) is None


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("a.PDF", "pdf"),
        ("archive.tar.gz", "gz"),
        ("README", ""),
        (".gitignore", ""),
        ("dot.", ""),
        ("a. txt", " txt"),
    ],
)
def test_endings(name: str, kind: str) -> None:
    assert ending(name) == kind


def test_files_that_nobody_can_read_are_unsupported_rather_than_filtered() -> None:
    assert _reason("a.exe", Policy()) is Reason.UNSUPPORTED_TYPE
    assert all(_reason(f"a.{kind}", Policy()) is None for kind in READABLE_TYPES)


@pytest.mark.parametrize(
    ("is_own", "reason"), [(True, Reason.OWN_PERMISSIONS), (False, None), (None, None)]
)
def test_only_what_was_told_to_have_permissions_of_its_own_is_left_out_for_it(
    is_own: bool | None,  # noqa: FBT001
    reason: Reason | None,
) -> None:
    file = replace(_FILE, own_permissions=is_own)
    assert _reason("a.txt", Policy(own_permissions="exclude"), file) is reason
    assert _reason("a.txt", Policy(), file) is None
    # What no connection wants anyway is told for that: nobody is asked about it.
    assert _reason("a.exe", Policy(own_permissions="exclude"), file) is Reason.UNSUPPORTED_TYPE

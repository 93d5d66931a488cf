from __future__ import annotations

import pytest

from graphsim.addressing import Address, parse_address, parse_options
from graphsim.ranges import UnsatisfiableRangeError, parse_ranges


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1.0/me/drive", {"owner": "me"}),
        ("/V1.0/Me/Drive/", {"owner": "me"}),
        ("/beta/drives/b!x", {"drive": "b!x"}),
        ("/_api/v2.0/drives/b!x/root", {"drive": "b!x", "item": "root"}),
        ("/v1.0/drives('b!x')/items('01A')", {"drive": "b!x", "item": "01A"}),
        ("/v1.0/drives(%27b!x%27)/items(%2701A%27)", {"drive": "b!x", "item": "01A"}),
        ("/v1.0/drives/x/items/A%21102/children", {"item": "A!102", "operation": "children"}),
        ("/v1.0/drives/x/items/A!102/", {"item": "A!102"}),
        ("/v1.0/users/u@x.invalid/drive/root", {"owner": "user:u@x.invalid", "item": "root"}),
        ("/v1.0/sites/h,1,2/drive", {"owner": "site:h,1,2"}),
        ("/v1.0/sites/h,1,2/drives/b!x/root/delta", {"drive": "b!x", "operation": "delta"}),
        ("/v1.0/drives/x/root:/a/b.txt", {"item": "root", "path": ["", "a", "b.txt"]}),
        ("/v1.0/drives/x/root:/a%2Fb.txt:", {"path": ["", "a", "b.txt"]}),
        ("/v1.0/drives/x/root:/a%3Ab:/children", {"path": ["", "a:b"], "operation": "children"}),
        ("/v1.0/drives/x/items/i:/it's%20(1)%25:/content", {"path": ["", "it's (1)%"]}),
        ("/v1.0/drives/x/ROOT/Delta(token='a%3D')", {"operation": "delta", "argument": "a="}),
        ("/v1.0/drives/x/root/delta()", {"operation": "delta", "argument": None}),
        ("/v1.0/drives/x/root/delta(token='T')", {"operation": "delta", "argument": "T"}),
        (
            "/v1.0/drives('d')/items('i')/microsoft.graph.delta(token='T')",
            {"drive": "d", "item": "i", "operation": "delta", "argument": "T"},
        ),
        ("/v1.0/me/drives", {"other": "/me/drives"}),
        ("/v1.0/drives/x/items/rooted", {"item": "rooted"}),
    ],
)
def test_every_spelling_of_an_address(path: str, expected: dict[str, object]) -> None:
    address = parse_address(path)
    assert isinstance(address, Address)
    assert {name: getattr(address, name) for name in expected} == expected


@pytest.mark.parametrize("path", ["/", "/v1.05/me/drive", "/common/oauth2/v2.0/token"])
def test_other_paths_are_not_graphs(path: str) -> None:
    assert parse_address(path) is None


def test_options_with_and_without_the_dollar() -> None:
    assert parse_options("$top=5&%24select=id%2Cname&token=") == {
        "top": "5",
        "select": "id,name",
        "token": "",
    }
    assert parse_options("TOP=5&select=id") == {"top": "5", "select": "id"}


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (None, None),
        ("bytes=0-0", [(0, 1)]),
        ("bytes=5-", [(5, 10)]),
        ("bytes=-3", [(7, 10)]),
        ("bytes=-30", [(0, 10)]),
        ("bytes=8-200", [(8, 10)]),
        ("bytes=0-1, 4-5,20-", [(0, 2), (4, 6)]),
        ("bytes=5-2", None),
        ("bytes=x-2", None),
        ("items=0-1", None),
    ],
)
def test_ranges(header: str | None, expected: list[tuple[int, int]] | None) -> None:
    assert parse_ranges(header, 10) == expected


@pytest.mark.parametrize("header", ["bytes=10-", "bytes=10-20,30-", "bytes=-0"])
def test_ranges_outside_of_the_file(header: str) -> None:
    with pytest.raises(UnsatisfiableRangeError):
        parse_ranges(header, 10)

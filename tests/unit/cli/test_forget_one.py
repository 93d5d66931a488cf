"""Which file ``forget`` means: it erases, so never more than one."""

from __future__ import annotations

import pytest

from drivefeed.cli.leaving import _only_one
from drivefeed.domain.errors import NeedsAttention

FOUND = {"1": "report.txt", "2": "x/report.txt", "3": "y/report.txt"}


@pytest.mark.parametrize(
    ("typed", "found", "meant"),
    [
        ("report.txt", FOUND, "report.txt"),
        ("/x/report.txt", FOUND, "x/report.txt"),
        ("REPORT.TXT", {"1": "report.txt"}, "report.txt"),
        ("upper.txt", {"1": "upper.txt", "2": "UPPER.TXT"}, "upper.txt"),
    ],
)
def test_one_file_is_meant(typed: str, found: dict[str, str], meant: str) -> None:
    assert list(_only_one(typed, found).values()) == [meant]


@pytest.mark.parametrize("typed", ["Report.txt", "report.TXT"])
def test_of_several_none_is_guessed(typed: str) -> None:
    with pytest.raises(NeedsAttention, match=r"3 files .* 'x/report\.txt', 'y/report\.txt'"):
        _only_one(typed, FOUND)


def test_two_of_one_path_are_told_apart_by_their_ids() -> None:
    with pytest.raises(NeedsAttention, match="by the id"):
        _only_one("a.txt", {"1": "a.txt", "2": "a.txt"})


def test_none_is_none() -> None:
    assert _only_one("a.txt", {}) == {}

"""A plan in words: one file is told as one, and what takes no time is not told as 0.0 s."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drivefeed.cli.output import console
from drivefeed.cli.plan import tell_plan
from drivefeed.domain.model import Policy
from drivefeed.domain.plan import Change, Plan, TypeSum

if TYPE_CHECKING:
    import pytest


def told(
    capsys: pytest.CaptureFixture[str],
    *,
    with_change: bool = True,
    policy: Policy | None = None,
    **values: Any,
) -> str:
    console.cache_clear()
    plan = Plan("o", "a", "b!x", "d", "Documents", "root", "Lab", policy or Policy(), 0, **values)
    tell_plan(plan, with_change=with_change)
    console.cache_clear()
    return capsys.readouterr().out


def test_one_is_told_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    one = told(capsys, change=Change(added=1, returning=1, removed=2, hidden=1, kept=1))
    assert "1 file of those that come is shown again at once." in one
    assert "1 leaves search at once, to be erased after the grace; 1 stays, because" in one
    assert "another connection wants it." in one
    several = told(capsys, change=Change(added=2, returning=2, removed=5, hidden=3, kept=2))
    assert "2 files of those that come are shown" in several
    assert "3 leave search at once, to be erased after the grace; 2 stay, because" in several
    assert "another connection wants them." in several


def test_what_takes_no_time_is_told_in_words(capsys: pytest.CaptureFixture[str]) -> None:
    quick = told(capsys, files=2, found=2, units=2, minutes=2 / 1000)
    assert "2 resource units of Microsoft's limit: at our share of it less than a second;" in quick
    assert "0.0 s" not in quick
    assert "at least 2 min" in told(capsys, files=2, found=2, units=9, minutes=2.0)


def test_where_nothing_changes_no_change_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert "+7" in told(capsys, change=Change(added=7))
    assert "+7" not in told(capsys, with_change=False, change=Change(added=7))


def test_permissions_are_told_as_far_as_they_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    listed = " ".join(told(capsys, files=4, found=4, shared=3).split())
    assert "Files with permissions of their own: 3. That is what the listing shows" in listed
    assert "'--own-permissions exclude' asks for each file, and leaves those out." in listed
    before = " ".join(told(capsys, files=4, found=4, shared=None).split())
    assert "Files with permissions of their own: not known, because the library" in before
    without = Policy(own_permissions="exclude")
    asked = " ".join(told(capsys, files=4, found=4, shared=0, policy=without).split())
    assert "permissions of their own: left out, as counted above; each file was asked" in asked


def test_labels_are_told_as_far_as_they_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    types = (TypeSum("docx", 5, 9, 1), TypeSum("txt", 4, 9, 1), TypeSum("pdf", 2, 9, 1))
    some = " ".join(told(capsys, files=11, found=11, types=types).split())
    assert "With a sensitivity label: not known, at most 7 files" in some
    assert "Microsoft's listings do not tell it, only a question for each file" in some
    assert "'--labelled exclude' asks before each download" in some
    without = Policy(labelled="exclude")
    asked = " ".join(told(capsys, files=11, found=11, types=types, policy=without).split())
    assert "This connection asks before each download, and leaves out the files" in asked
    none = told(capsys, files=4, found=4, types=types[1:2])
    assert "With a sensitivity label: none, because no file is of a type" in none

"""Policies as people write them: each option, all problems at once, and what stored ones become."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import UTC, date, datetime
from typing import Any

import pytest

from drivefeed.catalog.sources import policy_from
from drivefeed.domain.errors import NeedsAttention
from drivefeed.domain.model import Policy
from drivefeed.domain.policies import differences, policy_of, policy_words, read_policy
from drivefeed.domain.policy_options import OPTIONS
from drivefeed.domain.quiet import all_quiet_until, quiet_until

NOW = 1_790_000_000_000
_DAY = 86_400_000


@pytest.mark.parametrize(
    ("name", "written", "field", "value"),
    [
        ("subfolders", "no", "subfolders", False),
        ("subfolders", False, "subfolders", False),
        ("include", "*.pdf", "include", ("*.pdf",)),
        ("include", ["*.pdf", "/a/**", "*.pdf"], "include", ("*.pdf", "/a/**")),
        ("include", ["none"], "include", ()),
        ("exclude", ["~$*"], "exclude", ("~$*",)),
        ("types", "PDF, .docx *.txt", "types", ("pdf", "docx", "txt")),
        ("max_size", "50 MB", "max_bytes", 50_000_000),
        ("max_size", "1.5GiB", "max_bytes", 1_610_612_736),
        ("max_size", 17, "max_bytes", 17),
        ("modified_since", "2024-01-31", "modified_since", 1_706_659_200_000),
        ("modified_since", date(2024, 1, 31), "modified_since", 1_706_659_200_000),
        ("modified_since", "2024-01-31T01:00:00+01:00", "modified_since", 1_706_659_200_000),
        ("modified_since", "365 d", "modified_since", NOW - 365 * _DAY),
        ("modified_since", "1y", "modified_age_ms", 365 * _DAY),
        ("modified_since", "none", "modified_since", None),
        ("on_delete", "Keep", "on_delete", "keep"),
        ("grace", "12 h", "grace_ms", _DAY // 2),
        ("grace", 0, "grace_ms", 0),
        ("grace", 1.5, "grace_ms", 1500),
        ("brake_count", "0", "brake_count", 0),
        ("brake_percent", 100, "brake_percent", 100),
        ("brake_floor", "3", "brake_floor", 3),
        ("priority", "high", "priority", "high"),
        ("interval", "5 min", "interval_ms", 300_000),
        ("interval", "none", "interval_ms", None),
        ("quiet_hours", "8:00 - 18:00", "quiet_hours", "08:00-18:00"),
        ("quiet_hours", "", "quiet_hours", ""),
        ("time_zone", "Europe/Berlin", "time_zone", "Europe/Berlin"),
        ("backend", "embedded", "backend", "embedded"),
        ("deadline", "2 h", "deadline_ms", 7_200_000),
    ],
)
def test_options(name: str, written: Any, field: str, value: Any) -> None:
    assert getattr(policy_of({name: written}, now=NOW), field) == value


WRONG: dict[str, list[Any]] = {
    "subfolders": ["perhaps", None],
    "include": ["/", [1], 7],
    "exclude": [["//"]],
    "types": ["*.p?f", ["a/b"]],
    "max_size": ["50 cows", 0, -1, True, ""],
    "modified_since": ["yesterday", "0 d", 20240131, "2024-13-01"],
    "on_delete": ["destroy"],
    "grace": ["-1 d", "soon", True],
    "brake_count": [-1, "many", 1.5, True],
    "brake_percent": [101, -1],
    "brake_floor": [0],
    "priority": ["urgent", 1],
    "labelled": ["hide", 1],
    "own_permissions": ["hide", 1],
    "interval": ["1 s", 0],
    "quiet_hours": ["08:00", "25:00-26:00", "08:00-08:00", 8],
    "time_zone": ["Mars/Olympus", "", "../../etc/passwd"],
    "backend": ["No name!"],
    "deadline": ["1 s"],
}


def test_every_option_is_tried_with_wrong_values() -> None:
    assert set(WRONG) == {option.name for option in OPTIONS}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, vs in WRONG.items() for v in vs])
def test_a_wrong_value_is_a_sentence_with_the_option_and_what_is_allowed(
    name: str, value: Any
) -> None:
    policy, wrong = read_policy({name: value}, now=NOW)
    assert policy == Policy()
    assert wrong[name].startswith(f"{name} is ")
    assert "allowed: " in wrong[name]
    assert wrong[name].endswith(".")


def test_all_problems_are_told_at_once() -> None:
    written = {name: values[0] for name, values in WRONG.items()} | {"colour": "red"}
    with pytest.raises(NeedsAttention) as caught:
        policy_of(written, now=NOW)
    lines = str(caught.value).splitlines()[1:]
    assert len(lines) == len(WRONG) + 1
    assert "There is no option 'colour'" in lines[-1]


def test_options_that_do_not_go_together() -> None:
    _, wrong = read_policy(
        {"include": "*.pdf", "exclude": "*.pdf", "interval": "2 d", "grace": "1 d"}, now=NOW
    )
    assert set(wrong) == {"exclude", "interval"}


def test_the_same_age_again_is_no_change() -> None:
    first = policy_of({"modified_since": "30 d"}, now=NOW)
    assert policy_of({"modified_since": "30 d"}, now=NOW + _DAY, base=first) == first
    other = policy_of({"modified_since": "31 d"}, now=NOW + _DAY, base=first)
    assert other.modified_since == NOW - 30 * _DAY
    assert policy_of({"modified_since": "none"}, now=NOW, base=first).modified_age_ms is None


def test_what_is_told_can_be_written_again() -> None:
    written = {
        "subfolders": "no",
        "include": ["*.pdf"],
        "max_size": "3 MiB",
        "modified_since": "2024-01-31",
        "grace": "36 h",
        "interval": "90 s",
        "quiet_hours": "22:00-06:00",
        "time_zone": "Asia/Kolkata",
    }
    policy = policy_of(written, now=NOW)
    assert policy_of(policy_words(policy), now=NOW) == policy
    assert policy_of(policy_words(Policy()), now=NOW) == Policy()


def test_differences_are_told_option_by_option() -> None:
    after = replace(Policy(), types=("pdf",), grace_ms=_DAY)
    assert differences(Policy(), after) == (("types", "none", "pdf"), ("grace", "7 d", "1 d"))
    assert differences(after, after) == ()


def test_policies_that_were_stored_before_there_were_more_options_still_load() -> None:
    old = {
        "subfolders": True,
        "include": [],
        "exclude": ["*.tmp"],
        "types": ["pdf"],
        "max_bytes": 100,
        "modified_since": None,
        "on_delete": "keep",
        "grace_ms": 5,
        "brake_count": 1,
        "brake_percent": 2,
        "brake_floor": 3,
    }
    policy = policy_from(json.dumps(old))
    assert (policy.exclude, policy.types, policy.priority) == (("*.tmp",), ("pdf",), "normal")
    newer = asdict(policy) | {"of_a_later_version": 1}
    assert policy_from(json.dumps(newer)) == policy


def _at(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.parametrize(
    ("window", "zone", "now", "until"),
    [
        ("08:00-18:00", "UTC", "2026-05-04T07:59:59", None),
        ("08:00-18:00", "UTC", "2026-05-04T08:00:00", "2026-05-04T18:00:00"),
        ("08:00-18:00", "UTC", "2026-05-04T18:00:00", None),
        ("22:00-06:00", "UTC", "2026-05-04T23:00:00", "2026-05-05T06:00:00"),
        ("22:00-06:00", "UTC", "2026-05-05T05:59:59", "2026-05-05T06:00:00"),
        ("22:00-06:00", "UTC", "2026-05-05T12:00:00", None),
        ("08:00-18:00", "Europe/Berlin", "2026-05-04T06:30:00", "2026-05-04T16:00:00"),
        ("08:00-18:00", "Europe/Berlin", "2026-01-04T06:30:00", None),
        # Clocks are put forward over the end: 02:30 is not there, and is taken as 03:30.
        ("01:00-02:30", "Europe/Berlin", "2026-03-29T00:30:00", "2026-03-29T01:30:00"),
        # Clocks are put back: the end comes twice, the first one counts.
        ("01:00-02:30", "Europe/Berlin", "2026-10-24T23:30:00", "2026-10-25T00:30:00"),
        ("", "UTC", "2026-05-04T12:00:00", None),
    ],
)
def test_quiet_hours(window: str, zone: str, now: str, until: str | None) -> None:
    policy = Policy(quiet_hours=window, time_zone=zone)
    assert quiet_until(policy, _at(now)) == (_at(until) if until else None)


def test_a_file_is_quiet_while_all_that_want_it_are() -> None:
    early, late = Policy(quiet_hours="08:00-12:00"), Policy(quiet_hours="08:00-18:00")
    now = _at("2026-05-04T09:00:00")
    assert all_quiet_until([early, late], now) == _at("2026-05-04T12:00:00")
    assert all_quiet_until([early, Policy()], now) is None
    assert all_quiet_until([], now) is None


def test_a_wrong_value_is_told_as_it_is_written() -> None:
    _, wrong = read_policy({"own_permissions": True, "include": [False]}, now=NOW)
    assert wrong["own_permissions"] == "own_permissions is true; allowed: include or exclude."
    assert wrong["include"].startswith("include is [false]; ")

"""When downloads hold and when they go on: marks with a distance, and everybody's share."""

from __future__ import annotations

from dataclasses import replace

from drivefeed.domain.gate import (
    MIB,
    OPEN,
    Backlog,
    BacklogMarks,
    Gate,
    Marks,
    Room,
    gate_after,
)
from drivefeed.domain.reasons import Reason

MARKS = Marks(low=100 * MIB, high=200 * MIB)
BACKLOG = BacklogMarks(files=100, size=1_000, resume_percent=75)
NOTHING = Backlog({})


def room(free_mib: int, name: str = "data folder") -> Room:
    return Room(name, f"/{name}", free_mib * MIB, MARKS)


def after(gate: Gate, *free_mib: int, now: int = 0) -> Gate:
    rooms = [room(free, name) for free, name in zip(free_mib, "ab", strict=False)]
    return gate_after(gate, rooms, NOTHING, BACKLOG, now=now)


def test_downloads_hold_below_the_low_mark_and_go_on_at_the_high_one() -> None:
    gate = OPEN
    seen = []
    for now, free in enumerate([300, 150, 100, 99, 150, 199, 99, 200, 150]):
        gate = after(gate, free, now=now)
        seen.append(gate.is_shut)
        if gate.is_shut:
            assert gate.since == 3
    assert seen == [False, False, False, True, True, True, True, False, False]


def test_each_place_has_a_memory_of_its_own() -> None:
    gate = after(OPEN, 50, 300)
    assert gate.short == {"a"}
    gate = after(gate, 250, 150)
    assert not gate.is_shut
    gate = after(after(OPEN, 50, 50), 250, 150)
    assert gate.short == {"b"}


def test_it_says_where_how_much_is_free_and_what_it_takes() -> None:
    gate = after(OPEN, 50)
    assert gate.reason is Reason.WAITING_FOR_DISK
    assert gate.words == "Only 50.0 MiB free in the a '/a'; downloads go on at 200.0 MiB."


def backlog(gate: Gate = OPEN, **files: int) -> Gate:
    waits = Backlog({org: (count, count) for org, count in files.items()})
    return gate_after(gate, [], waits, BACKLOG, now=0)


def test_who_fills_the_backlog_holds_and_others_do_not() -> None:
    gate = backlog(many=99, few=1)
    assert (gate.reason, gate.orgs, gate.is_shut) == (
        Reason.WAITING_FOR_INDEXING,
        {"many"},
        False,
    )
    assert backlog(many=98, few=1) == OPEN
    assert backlog(alone=100).orgs == {"alone"}
    assert backlog(one=50, other=50).orgs == {"one", "other"}


def test_it_goes_on_below_the_share_of_the_mark() -> None:
    gate = backlog(many=100)
    assert backlog(gate, many=75).orgs == {"many"}
    assert backlog(gate, many=74) == OPEN


def test_a_few_large_files_hold_as_well() -> None:
    large = Backlog({"large": (2, 1_000), "small": (5, 5)})
    gate = gate_after(OPEN, [], large, BACKLOG, now=0)
    assert "large" in gate.orgs


def test_room_matters_more_than_the_backlog() -> None:
    full = Backlog({"many": (100, 100)})
    gate = gate_after(OPEN, [room(50)], full, BACKLOG, now=0)
    assert gate.is_shut
    assert gate_after(gate, [replace(room(0), free=MARKS.high)], full, BACKLOG, now=0).orgs

"""Each invariant is found when it is broken by hand, alone, and none of what is as it should be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog.audit import Books, Charge, Version
from drivefeed.domain.lifecycle import State
from drivefeed.services.invariants import INVARIANTS, Facts

if TYPE_CHECKING:
    from collections.abc import Callable

LIVE = Version(
    import_id="live",
    document_id="document",
    round=1,
    state=State.SETTLED,
    object_key="org/document/live/1",
    size=5,
    sha256="aa",
    chunks=2,
    wanted=True,
    live=True,
    waits=False,
    due=None,
    shown=True,
)
OLD = replace(
    LIVE,
    import_id="old",
    state=State.WITHDRAWN,
    object_key="org/document/old/1",
    sha256="bb",
    wanted=False,
    live=False,
)
GOOD = Facts(
    books=Books(
        versions=[LIVE, OLD],
        hidden={},
        charges=[
            Charge("document", "old", "bb"),
            Charge("document", "live", "aa"),
        ],
        submissions={"old:1": 1, "live:1": 1},
    ),
    objects={LIVE.object_key: 5},
    rounds={("live", 1): (True, 2)},
    read={LIVE.object_key: "aa"},
)


def versions(*found: Version) -> Facts:
    return replace(GOOD, books=replace(GOOD.books, versions=list(found)))


def books(**what: object) -> Facts:
    return replace(GOOD, books=replace(GOOD.books, **what))  # type: ignore[arg-type]


def under_way(**what: object) -> Facts:
    """A third version, of which there is an object and nothing else."""
    third = replace(
        LIVE,
        import_id="third",
        state=State.STORED,
        object_key="org/document/third/1",
        wanted=False,
        live=False,
        chunks=None,
    )
    found = versions(LIVE, OLD, replace(third, **what))  # type: ignore[arg-type]
    return replace(found, objects={**GOOD.objects, third.object_key: 5})


LIVE_ELSEWHERE = versions(replace(LIVE, indexed_here=False), OLD)
"""What another backend shows is not looked for in our own index."""

BROKEN: dict[str, list[Callable[[], Facts]]] = {
    "not_live": [
        lambda: books(hidden={"other": "gone"}),
        lambda: books(dangling={"other": "gone"}),
        lambda: versions(replace(LIVE, shown=None), OLD),
    ],
    "missing_in_store": [
        lambda: replace(GOOD, objects={}),
        lambda: replace(GOOD, objects={LIVE.object_key: 4}),
    ],
    "extra_in_store": [
        lambda: replace(GOOD, objects={**GOOD.objects, OLD.object_key: 5}),
        lambda: replace(GOOD, objects={**GOOD.objects, "somebody's": 5}),
    ],
    "bytes_differ": [lambda: replace(GOOD, read={LIVE.object_key: "bb"})],
    "missing_in_index": [
        lambda: replace(GOOD, rounds={}),
        lambda: replace(GOOD, rounds={("live", 1): (False, 2)}),
        lambda: replace(GOOD, rounds={("live", 1): (True, 1)}),
        lambda: replace(GOOD, partly_shown=frozenset({("live", 1)})),
    ],
    "extra_in_index": [
        lambda: replace(GOOD, rounds={**GOOD.rounds, ("old", 1): (False, 1)}),
        lambda: replace(GOOD, rounds={**GOOD.rounds, ("live", 2): (True, 2)}),
        lambda: replace(GOOD, rounds={**GOOD.rounds, ("unknown", 1): (False, 1)}),
    ],
    "submitted_twice": [lambda: books(submissions={"live:1": 2})],
    "charged_twice": [
        lambda: books(charges=[*GOOD.books.charges, GOOD.books.charges[1]]),
        lambda: books(charges=[*GOOD.books.charges, Charge("document", "again", "aa")]),
    ],
    "not_charged": [lambda: books(charges=GOOD.books.charges[:1])],
    "usage": [lambda: replace(GOOD, usage=("demo: 5 pages counted, 4 in the ledger",))],
    "due_at_rest": [lambda: versions(LIVE, replace(OLD, due="withdraw"))],
    "forgotten": [under_way],
    "upload_left_over": [lambda: replace(GOOD, left_over=1)],
}


def broken_in(facts: Facts) -> list[str]:
    return [one.name for one in INVARIANTS if list(one.check(facts))]


def test_what_is_as_it_should_be_breaks_none() -> None:
    assert broken_in(GOOD) == []


@pytest.mark.parametrize(
    ("name", "number"), [(name, n) for name, ways in BROKEN.items() for n in range(len(ways))]
)
def test_each_is_found_alone_when_it_is_broken(name: str, number: int) -> None:
    assert broken_in(BROKEN[name][number]()) == [name]


def test_a_wanted_version_that_search_does_not_show_is_found() -> None:
    hidden = replace(versions(replace(LIVE, live=False), OLD), rounds={("live", 1): (False, 2)})
    assert broken_in(hidden) == ["not_live"]
    assert broken_in(versions(replace(LIVE, wanted=False), OLD)) == ["not_live"]


@pytest.mark.parametrize(
    "facts",
    [
        under_way(due="submit"),
        under_way(waits=True),
        versions(replace(LIVE, live=False, due="publish"), OLD),
        # Its next version is held, or failed: search shows this one until it is there.
        versions(
            replace(LIVE, wanted=False),
            OLD,
            replace(OLD, import_id="next", state=State.DISCOVERED, wanted=True, waits=True),
        ),
        replace(LIVE_ELSEWHERE, rounds={}),
    ],
)
def test_what_is_under_way_breaks_none(facts: Facts) -> None:
    assert broken_in(facts) == []


@pytest.mark.parametrize(
    "name", ["missing_in_store", "extra_in_store", "missing_in_index", "extra_in_index"]
)
def test_what_took_a_step_while_all_was_read_breaks_none(name: str) -> None:
    moved = frozenset({"live", "old"})
    told = [broken_in(replace(one(), moved=moved)) for one in BROKEN[name]]
    assert [] in told


def test_every_invariant_has_a_name_of_its_own_a_sentence_and_a_remedy() -> None:
    assert {one.name for one in INVARIANTS} == set(BROKEN)
    assert len(INVARIANTS) == len(BROKEN)
    for one in INVARIANTS:
        assert one.sentence.endswith(".")
        assert one.remedy.endswith(".")

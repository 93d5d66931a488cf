"""Deletion with evidence: hidden at once, erased after the grace, braked, undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from drivefeed.catalog.leaving import approve_removals, discard_removals
from drivefeed.catalog.listing import live_rounds
from drivefeed.catalog.tables import connections, coverage
from drivefeed.catalog.usage_tables import ledger
from drivefeed.domain.errors import NotFound
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.model import Policy
from drivefeed.domain.reasons import Reason
from unit.catalog.rig import ROOT, Rig, file, folder, gone

if TYPE_CHECKING:
    from support.clock import ManualClock

_TREE = [ROOT, folder("docs"), folder("other"), folder("sub", "docs")]
_GRACE = Policy().grace_ms


def _files(count: int, parent: str = "docs") -> list[object]:
    return [file(f"f{number:03}", parent) for number in range(count)]


async def test_a_deleted_file_is_hidden_at_once_and_erased_after_the_grace(
    rig: Rig, clock: ManualClock
) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    one = await rig.bring_live("a")
    before = await rig.document("a")
    shown = await live_rounds(rig.catalog, before["org_id"], {before["id"]})
    assert shown == {(one.import_id, 1)}
    await rig.round(gone("a"))
    row = await rig.document("a")
    assert await rig.live() == set()
    # Search asks the catalog for what is live: it is hidden by the commit that removes it, with no
    # stage run since and no second gone by.
    assert await live_rounds(rig.catalog, row["org_id"], {row["id"]}) == set()
    assert (row["wanted_import_id"], row["unwanted_reason"]) == (None, Reason.REMOVED_AT_SOURCE)
    assert row["erase_at"] == clock.now() + _GRACE
    assert await rig.due(one.import_id) == ("publish", 0)
    await rig.publish("a")
    assert await rig.due(one.import_id) == ("withdraw", _GRACE)
    assert await rig.coverage() == {}


async def test_put_back_within_the_grace_it_is_shown_again_without_another_round(
    rig: Rig, clock: ManualClock
) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    one = await rig.bring_live("a", pages=3)
    await rig.round(gone("a"))
    await rig.publish("a")
    clock.turn(ms=_GRACE - 1)
    await rig.round([file("a", "docs")])
    back = await rig.import_of("a")
    assert (back.import_id, back.round, back.state) == (one.import_id, 1, State.SETTLED)
    assert await rig.live() == {"a"}
    assert await rig.due(one.import_id) == ("publish", 0)
    await rig.publish("a")
    assert await rig.due(one.import_id) is None
    assert (await rig.document("a"))["erase_at"] is None


async def test_put_back_after_the_grace_it_is_a_new_round_that_is_not_charged_again(
    rig: Rig, clock: ManualClock
) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    one = await rig.bring_live("a", pages=3)
    await rig.round(gone("a"))
    await rig.publish("a")
    clock.turn(ms=_GRACE)
    one = await rig.withdraw(await rig.import_of("a"))
    assert one.state is State.WITHDRAWN
    assert await rig.due(one.import_id) is None
    await rig.round([file("a", "docs")])
    again = await rig.bring_live("a", pages=3)
    assert (again.import_id, again.round) == (one.import_id, 2)
    assert await rig.live() == {"a"}
    assert await rig.pages_used() == 3
    assert len(await rig.rows(ledger)) == 1


async def test_a_withdrawal_that_was_begun_before_the_return_withdraws_nothing(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    one = await rig.bring_live("a")
    await rig.round(gone("a"))
    await rig.round([file("a", "docs")])
    after = await rig.advance(one, Event.UNWANTED, reason=Reason.REMOVED_AT_SOURCE)
    assert after.state is State.SETTLED
    assert await rig.live() == {"a"}


async def test_what_is_on_its_way_is_withdrawn_at_once(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    await rig.round(gone("a"))
    one = await rig.import_of("a")
    assert (one.state, one.reason) == (State.WITHDRAWING, Reason.REMOVED_AT_SOURCE)
    assert await rig.due(one.import_id) == ("withdraw", 0)


async def test_a_deleted_folder_takes_along_what_lies_below_it(rig: Rig) -> None:
    await rig.enumerate([*_TREE, folder("deep", "sub"), file("a", "deep"), file("b", "docs")])
    await rig.round(gone("sub"))
    assert await rig.wanted() == {"b": "1"}
    await rig.round([folder("sub", "docs")])
    assert await rig.wanted() == {"a": "1", "b": "1"}


async def test_keep_keeps_what_the_source_removed_but_not_what_a_filter_excludes(rig: Rig) -> None:
    await rig.connect(policy=Policy(on_delete="keep"))
    await rig.scan()
    await rig.enumerate([*_TREE, file("a", "docs"), file("b", "docs"), file("c", "docs")])
    await rig.round([*gone("a"), file("b", "other"), file("c", "docs", name="c.exe")])
    assert set(await rig.wanted()) == {"a", "b"}
    await rig.round([file("a", "docs", "2")])
    assert (await rig.wanted())["a"] == "2"


async def test_keep_wins_over_mirror(rig: Rig) -> None:
    await rig.connect("sub", Policy(on_delete="keep"))
    await rig.scan("sub")
    await rig.enumerate([*_TREE, file("a", "sub"), file("b", "docs")])
    await rig.round(gone("a", "b"))
    assert set(await rig.wanted()) == {"a"}


@pytest.mark.parametrize(
    ("documents", "removed", "stops"),
    [(200, 51, True), (200, 40, False), (60, 13, True), (60, 12, False), (9, 9, False)],
)
async def test_too_many_removals_at_once_stop_and_ask(
    rig: Rig, documents: int, removed: int, *, stops: bool
) -> None:
    await rig.enumerate(_TREE, _files(documents))
    await rig.round(gone(*(f"f{number:03}" for number in range(removed))))
    assert (await rig.attention() == Reason.MASS_REMOVAL) is stops
    assert len(await rig.wanted()) == (documents if stops else documents - removed)


async def test_a_brake_says_what_it_holds_and_stops_the_hiding_too(rig: Rig) -> None:
    await rig.enumerate(_TREE, _files(12))
    await rig.bring_live("f000")
    await rig.round(gone(*(f"f{number:03}" for number in range(12))))
    (row,) = await rig.rows(connections)
    assert row["detail"] == "12 of 12 documents disappeared at once."
    assert await rig.live() == {"f000"}
    await rig.round([file("new", "docs")])
    assert "new" in await rig.wanted(), "additions go on"


async def test_approved_removals_are_applied_all(rig: Rig) -> None:
    await rig.enumerate(_TREE, _files(230), _files(1, "sub"))
    await rig.round(gone(*(f"f{number:03}" for number in range(210))))
    assert await approve_removals(rig.catalog, rig.connections["docs"]) == 210
    assert len(await rig.wanted()) == 20
    assert await rig.attention() is None


async def test_discarded_removals_keep_the_documents(rig: Rig) -> None:
    await rig.enumerate(_TREE, _files(12))
    await rig.round(gone(*(f"f{number:03}" for number in range(12))))
    assert await discard_removals(rig.catalog, rig.connections["docs"]) == 12
    await rig.round([])
    assert await rig.attention() is None
    assert len(await rig.wanted()) == 12


async def test_a_brake_lets_go_when_everything_came_back(rig: Rig) -> None:
    await rig.enumerate(_TREE, _files(12, "sub"))
    await rig.round(gone("sub"))
    assert await rig.attention() == Reason.MASS_REMOVAL
    await rig.round([folder("sub", "docs")])
    assert await rig.attention() is None
    assert len(await rig.wanted()) == 12


async def test_a_decision_about_an_unknown_connection_says_so(rig: Rig) -> None:
    with pytest.raises(NotFound, match="nowhere"):
        await approve_removals(rig.catalog, "nowhere")
    with pytest.raises(NotFound, match="nowhere"):
        await discard_removals(rig.catalog, "nowhere")


@pytest.mark.parametrize("how", ["tombstone", "with all below", "above it"])
async def test_the_connected_folder_gone_removes_nothing_and_asks(rig: Rig, how: str) -> None:
    top = [ROOT, folder("top"), folder("docs", "top"), folder("sub", "docs")]
    await rig.enumerate([*top, file("a", "sub"), file("b", "docs")])
    lost = {"tombstone": ["docs"], "with all below": ["a", "b", "sub", "docs"], "above it": ["top"]}
    await rig.round(gone(*lost[how]))
    assert await rig.attention() == Reason.FOLDER_GONE
    assert set(await rig.wanted()) == {"a", "b"}
    returns = {
        "tombstone": [folder("docs", "top")],
        "with all below": [folder("docs", "top"), folder("sub", "docs"), file("a", "sub")],
        "above it": [folder("top")],
    }
    await rig.round(returns[how])
    assert await rig.attention() is None
    left = {"a"} if how == "with all below" else {"a", "b"}
    assert set(await rig.wanted()) == left, "what did not come back with its folder is gone"


async def test_an_enumeration_that_misses_the_connected_folder_removes_nothing(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    await rig.enumerate([ROOT, folder("other")])
    assert await rig.attention() == Reason.FOLDER_GONE
    assert set(await rig.wanted()) == {"a"}
    await rig.enumerate([*_TREE, file("a", "docs")])
    assert await rig.attention() is None
    assert set(await rig.wanted()) == {"a"}


async def test_the_removal_of_a_folder_that_is_gone_can_be_approved(rig: Rig) -> None:
    await rig.enumerate([*_TREE, file("a", "docs")])
    await rig.round(gone("docs"))
    assert await approve_removals(rig.catalog, rig.connections["docs"]) == 1
    assert await rig.wanted() == {}
    await rig.round([folder("docs")])
    assert set(await rig.wanted()) == {"a"}


async def test_an_empty_answer_to_a_full_enumeration_removes_nothing(rig: Rig) -> None:
    await rig.enumerate([*_TREE, *_files(3)])
    await rig.enumerate([])
    assert len(await rig.wanted()) == 3
    assert await rig.attention() == Reason.FOLDER_GONE
    assert not await rig.rows(coverage, coverage.c.leaving.is_not(None))


async def test_what_left_a_folder_while_that_was_gone_leaves_when_it_is_back(rig: Rig) -> None:
    await rig.enumerate([*_TREE, *_files(3)])
    moved = [file("f000", "other"), *gone("f001"), *gone("docs")]
    await rig.round([file("f001", "other")], moved)
    assert await rig.attention() == Reason.FOLDER_GONE
    assert set(await rig.wanted()) == {"f000", "f001", "f002"}
    await rig.round([folder("docs")])
    assert await rig.attention() is None
    assert await rig.coverage() == {"f002": None}
    assert set(await rig.wanted()) == {"f002"}


async def test_what_left_a_folder_that_is_told_late_in_the_listing_leaves(rig: Rig) -> None:
    await rig.enumerate([*_TREE, *_files(2)])
    # A round under way said so, and was broken off before it ended.
    await rig.apply([*gone("docs")], ends=False)
    tree = [ROOT, folder("other"), file("f000", "other")]
    await rig.enumerate(tree, [folder("docs"), file("f001", "docs")])
    assert await rig.coverage() == {"f001": None}
    assert set(await rig.wanted()) == {"f001"}

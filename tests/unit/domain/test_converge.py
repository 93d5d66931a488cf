"""What follows from the facts, case by case."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivefeed.domain.converge import Due, converge, may_stand_for, next_due, relieved, waits
from drivefeed.domain.lifecycle import ENDED, State
from drivefeed.domain.model import Document, Import, Live
from drivefeed.domain.reasons import Reason

_NOW = 1_000


def _import(key: str = "a", state: State = State.DISCOVERED, **changes: Any) -> Import:
    return replace(Import(key, "d", "o", f"v{key}", state=state), **changes)


def _document(**changes: Any) -> Document:
    return replace(Document("d", "o", wanted="a", seq=1), **changes)


@pytest.mark.parametrize(
    ("state", "stage"),
    [
        (State.DISCOVERED, "transfer"),
        (State.STORED, "submit"),
        (State.SUBMITTED, "submit"),
        (State.WITHDRAWING, "withdraw"),
    ],
)
def test_the_stage_that_a_state_needs(state: State, stage: str) -> None:
    assert next_due(_document(), _import(state=state), now=_NOW) == Due(stage, _NOW)


def test_a_known_backend_job_is_polled() -> None:
    one = _import(state=State.SUBMITTED, backend_job="j")
    assert next_due(_document(), one, now=_NOW) == Due("poll", _NOW)


@pytest.mark.parametrize("hold", [Reason.QUOTA, Reason.PAUSED])
def test_these_holds_are_woken_by_somebody_else(hold: Reason) -> None:
    assert next_due(_document(), _import(hold=hold), now=_NOW) is None


@pytest.mark.parametrize("hold", [Reason.WAITING_FOR_STORE, Reason.THROTTLED])
def test_these_holds_only_tell_why_the_stage_is_due_later(hold: Reason) -> None:
    assert next_due(_document(), _import(hold=hold), now=_NOW) == Due("transfer", _NOW)


def test_attention_waits_but_a_late_backend_is_still_asked() -> None:
    late = _import(state=State.SUBMITTED, backend_job="j", attention=Reason.BACKEND_LATE)
    assert not waits(late)
    assert waits(replace(late, attention=Reason.ATTEMPTS_EXHAUSTED))
    assert waits(replace(late, state=State.STORED))


def test_the_first_version_goes_live_when_it_settles() -> None:
    one = _import(state=State.SETTLED, shown=True)
    outcome = converge(_document(), [one], now=_NOW)
    assert outcome.document.live == Live("a", 1)
    assert outcome.due == {"a": None}
    assert outcome.moves == ()


def test_an_older_version_stays_searchable_until_the_wanted_one_is() -> None:
    document = _document(wanted="b", live=Live("a", 1))
    a = _import("a", State.SETTLED, shown=True)
    outcome = converge(document, [a, _import("b", State.SUBMITTED, backend_job="j")], now=_NOW)
    assert outcome.document.live == Live("a", 1)
    assert outcome.due == {"a": None, "b": Due("poll", _NOW)}
    outcome = converge(document, [a, _import("b", State.SETTLED, shown=True)], now=_NOW)
    assert outcome.document.live == Live("b", 1)
    assert outcome.imports["a"].state is State.WITHDRAWING
    assert outcome.imports["a"].reason is Reason.SUPERSEDED


def test_a_refused_version_leaves_the_older_one_searchable() -> None:
    document = _document(wanted="b", live=Live("a", 1))
    outcome = converge(
        document, [_import("a", State.SETTLED, shown=True), _import("b", State.REJECTED)], now=_NOW
    )
    assert outcome.document.live == Live("a", 1)
    assert outcome.due == {"a": None, "b": None}


def test_a_removal_hides_at_once_and_erases_after_the_grace() -> None:
    document = _document(
        wanted=None, live=Live("a", 1), unwanted_reason=Reason.REMOVED_AT_SOURCE, erase_at=9_000
    )
    shown = _import(state=State.SETTLED, shown=True)
    outcome = converge(document, [shown], now=_NOW)
    assert outcome.document.live is None
    assert outcome.due == {"a": Due("publish", _NOW)}
    assert outcome.imports["a"].shown is None
    hidden = converge(outcome.document, [replace(shown, shown=False)], now=_NOW)
    assert hidden.due == {"a": Due("withdraw", 9_000)}


def test_content_that_is_on_its_way_when_the_file_goes_is_withdrawn_at_once() -> None:
    document = _document(wanted=None, unwanted_reason=Reason.REMOVED_AT_SOURCE, erase_at=9_000)
    outcome = converge(document, [_import(state=State.STORED)], now=_NOW)
    assert outcome.imports["a"].state is State.WITHDRAWING
    assert outcome.imports["a"].reason is Reason.REMOVED_AT_SOURCE


def test_what_the_backend_may_know_is_asked_for_before_it_is_withdrawn() -> None:
    document = _document(wanted=None, unwanted_reason=Reason.REMOVED_AT_SOURCE)
    outcome = converge(document, [_import(state=State.SUBMITTED, backend_job="j")], now=_NOW)
    assert outcome.imports["a"].state is State.SUBMITTED
    assert outcome.due == {"a": Due("poll", _NOW)}


def test_restored_within_the_grace_is_live_again_without_another_round() -> None:
    hidden = _import(state=State.SETTLED, shown=False)
    outcome = converge(_document(live=None), [hidden], now=_NOW)
    assert outcome.document.live == Live("a", 1)
    assert outcome.imports["a"].round == 1
    assert outcome.due == {"a": Due("publish", _NOW)}


def test_a_hiding_whose_commit_was_lost_is_undone_by_the_return() -> None:
    """The index may hide it already, although the catalog never heard of it."""
    removed = _document(wanted=None, unwanted_reason=Reason.REMOVED_AT_SOURCE, live=Live("a", 1))
    outcome = converge(removed, [_import(state=State.SETTLED, shown=True)], now=_NOW)
    back = converge(replace(outcome.document, wanted="a"), outcome.imports.values(), now=_NOW)
    assert back.document.live == Live("a", 1)
    assert back.due == {"a": Due("publish", _NOW)}


def test_wanted_again_after_it_was_withdrawn_starts_another_round() -> None:
    outcome = converge(_document(), [_import(state=State.WITHDRAWN)], now=_NOW)
    assert (outcome.imports["a"].state, outcome.imports["a"].round) == (State.DISCOVERED, 2)
    assert outcome.due == {"a": Due("transfer", _NOW)}


def test_wanted_again_while_it_is_being_withdrawn_waits_for_the_end_of_that() -> None:
    outcome = converge(_document(), [_import(state=State.WITHDRAWING)], now=_NOW)
    assert outcome.moves == ()
    assert outcome.due == {"a": Due("withdraw", _NOW)}


def test_a_misplaced_document_is_published_by_its_live_import_alone() -> None:
    document = _document(wanted="b", live=Live("a", 1), misplaced=True)
    a = _import("a", State.SETTLED, shown=True)
    outcome = converge(document, [a, _import("b", State.STORED)], now=_NOW)
    assert outcome.due == {"a": Due("publish", _NOW), "b": Due("submit", _NOW)}


def test_relief_takes_attention_and_hold_but_not_from_what_has_ended() -> None:
    one = _import(attention=Reason.ATTEMPTS_EXHAUSTED, hold=Reason.QUOTA)
    assert relieved(one) == _import(revision=2)
    ended = replace(one, state=State.WITHDRAWN)
    assert relieved(ended) is ended
    assert relieved(_import()) == _import()


def test_only_a_version_that_holds_what_its_key_promises_stands_for_another() -> None:
    twin = _import(state=State.SETTLED, integrity="verified")
    assert may_stand_for(twin)
    assert may_stand_for(replace(twin, integrity="no_listed_hash", state=State.STORED))
    assert not may_stand_for(replace(twin, integrity="server_modified"))
    assert not any(
        may_stand_for(replace(twin, state=state))
        for state in (State.DISCOVERED, State.WITHDRAWING, *ENDED)
    )


_IMPORTS = st.builds(
    Import,
    import_id=st.just("a"),
    document_id=st.just("d"),
    org_id=st.just("o"),
    version_key=st.just("v"),
    state=st.sampled_from(State),
    round=st.integers(1, 2),
    shown=st.sampled_from([None, True, False]),
    attention=st.sampled_from([None, Reason.BACKEND_LATE, Reason.CRASHES_WORKER]),
    hold=st.sampled_from([None, Reason.PAUSED, Reason.THROTTLED]),
    backend_job=st.sampled_from([None, "j"]),
)


@st.composite
def _situations(draw: st.DrawFn) -> tuple[Document, list[Import]]:
    """Any document with any imports, also ones that no journey leads to."""
    imports = [
        replace(draw(_IMPORTS), import_id=key) for key in draw(st.sets(st.sampled_from("abc")))
    ]
    names = [None, *(one.import_id for one in imports)]
    live = draw(st.sampled_from(names))
    wanted = draw(st.sampled_from(names))
    document = Document(
        "d",
        "o",
        wanted=wanted,
        live=Live(live, draw(st.integers(1, 2))) if live else None,
        unwanted_reason=None if wanted else Reason.REMOVED_AT_SOURCE,
        erase_at=None if wanted else draw(st.sampled_from([None, _NOW - 1, _NOW + 1])),
        misplaced=draw(st.booleans()),
    )
    return document, imports


@given(_situations())
def test_converging_twice_is_converging_once(situation: tuple[Document, list[Import]]) -> None:
    document, imports = situation
    once = converge(document, imports, now=_NOW)
    twice = converge(once.document, once.imports.values(), now=_NOW)
    assert twice.moves == ()
    assert (twice.document, twice.imports, twice.due) == (once.document, once.imports, once.due)


@given(_situations())
def test_nothing_is_forgotten_and_rest_is_rest(situation: tuple[Document, list[Import]]) -> None:
    outcome = converge(*situation, now=_NOW)
    for key, one in outcome.imports.items():
        is_live = outcome.document.live == one.as_live
        rests = one.state in ENDED or (
            one.state is State.SETTLED
            and one.shown is is_live
            and (is_live or outcome.document.wanted == key)
            and not (is_live and outcome.document.misplaced)
        )
        assert (outcome.due[key] is None) is (rests or waits(one))


@given(_situations())
def test_what_is_live_is_settled_and_changes_only_to_what_is_wanted(
    situation: tuple[Document, list[Import]],
) -> None:
    before, imports = situation
    outcome = converge(before, imports, now=_NOW)
    live = outcome.document.live
    if live is None:
        return
    assert outcome.imports[live.import_id].state is State.SETTLED
    assert outcome.imports[live.import_id].as_live == live
    assert outcome.document.wanted is not None
    assert live == before.live or live.import_id == outcome.document.wanted

"""The state machine is data; these tests read the data."""

from __future__ import annotations

import pytest

from drivefeed.domain.converge import apply
from drivefeed.domain.lifecycle import ENDED, TRANSITIONS, Event, State, next_state
from drivefeed.domain.model import Import
from drivefeed.domain.reasons import Reason

_WAYS_OUT = {
    State.DISCOVERED: {Event.STORED, Event.SAME_BYTES, Event.REFUSED, Event.UNWANTED},
    State.STORED: {Event.SUBMITTING, Event.REFUSED, Event.UNWANTED},
    State.SUBMITTED: {Event.ACCEPTED, Event.SETTLED, Event.REFUSED, Event.CANCELLED},
    State.SETTLED: {Event.PUBLISHED, Event.UNWANTED},
    State.WITHDRAWING: {Event.REMOVED},
    State.WITHDRAWN: {Event.WANTED_AGAIN},
    State.REJECTED: {Event.WANTED_AGAIN, Event.UNWANTED},
}


def _import(state: State) -> Import:
    return Import(
        "i",
        "d",
        "o",
        "v",
        state=state,
        attention=Reason.ATTEMPTS_EXHAUSTED,
        hold=Reason.QUOTA,
        backend_job="job",
        poll_count=3,
        chunks=4,
        shown=True,
        deadline_at=5,
        misplaced=True,
    )


@pytest.mark.parametrize("state", State)
def test_each_state_is_left_by_exactly_these_events(state: State) -> None:
    assert {event for event in Event if next_state(state, event)} == _WAYS_OUT[state]


def test_every_state_can_be_reached_from_a_discovery() -> None:
    reached = {State.DISCOVERED}
    while True:
        more = {after for (before, _), after in TRANSITIONS.items() if before in reached}
        if more <= reached:
            break
        reached |= more
    assert reached == set(State)


@pytest.mark.parametrize("state", State)
def test_every_state_can_come_to_rest_and_be_wanted_again(state: State) -> None:
    reached = {state}
    for _ in State:
        reached |= {after for (before, _), after in TRANSITIONS.items() if before in reached}
    assert reached & ENDED
    assert State.DISCOVERED in reached


def test_every_event_of_the_list_happens_somewhere() -> None:
    assert {event for _, event in TRANSITIONS} == set(Event)


def test_nothing_is_submitted_before_it_is_stored_nor_settled_before_it_is_submitted() -> None:
    assert [b for (b, _), after in TRANSITIONS.items() if after is State.SUBMITTED] == [
        State.STORED,
        State.SUBMITTED,
    ]
    assert {b for (b, _), after in TRANSITIONS.items() if after is State.SETTLED} == {
        State.SUBMITTED,
        State.SETTLED,
    }


@pytest.mark.parametrize(("state", "event"), TRANSITIONS)
def test_each_change_ends_waiting_and_raises_the_revision(state: State, event: Event) -> None:
    after = apply(_import(state), event, reason=Reason.SUPERSEDED)
    assert after is not None
    assert after.state is TRANSITIONS[(state, event)]
    assert (after.attention, after.hold) == (None, None)
    assert after.revision == 2


@pytest.mark.parametrize("state", ENDED)
def test_another_round_starts_with_nothing_of_the_last_one(state: State) -> None:
    after = apply(_import(state), Event.WANTED_AGAIN)
    assert after is not None
    assert after.round == 2
    assert (after.backend_job, after.deadline_at, after.chunks, after.shown, after.reason) == (
        (None,) * 5
    )
    assert (after.poll_count, after.misplaced) == (0, False)


def test_an_event_that_no_longer_applies_changes_nothing() -> None:
    assert apply(_import(State.WITHDRAWING), Event.STORED) is None

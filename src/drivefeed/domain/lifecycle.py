"""The journey of an Import: states that are facts, and the events that change them.

``TRANSITIONS`` is the state machine. Docs draw it, tests prove it total over what may happen and
every state reachable.
"""

from __future__ import annotations

from enum import StrEnum

from drivefeed.domain.reasons import Reason


class State(StrEnum):
    """What is durably true of an Import, or what may already be true outside."""

    DISCOVERED = "discovered"
    STORED = "stored"
    SUBMITTED = "submitted"
    SETTLED = "settled"
    WITHDRAWING = "withdrawing"
    WITHDRAWN = "withdrawn"
    REJECTED = "rejected"


ENDED = frozenset({State.WITHDRAWN, State.REJECTED})


class Event(StrEnum):
    """What can happen to an Import."""

    STORED = "stored"
    SAME_BYTES = "same_bytes"
    SUBMITTING = "submitting"
    ACCEPTED = "accepted"
    SETTLED = "settled"
    PUBLISHED = "published"
    REFUSED = "refused"
    CANCELLED = "cancelled"
    UNWANTED = "unwanted"
    REMOVED = "removed"
    WANTED_AGAIN = "wanted_again"


_S, _E = State, Event

TRANSITIONS: dict[tuple[State, Event], State] = {
    (_S.DISCOVERED, _E.STORED): _S.STORED,
    (_S.DISCOVERED, _E.SAME_BYTES): _S.WITHDRAWING,
    (_S.DISCOVERED, _E.REFUSED): _S.REJECTED,
    (_S.DISCOVERED, _E.UNWANTED): _S.WITHDRAWING,
    (_S.STORED, _E.SUBMITTING): _S.SUBMITTED,
    (_S.STORED, _E.REFUSED): _S.REJECTED,
    (_S.STORED, _E.UNWANTED): _S.WITHDRAWING,
    (_S.SUBMITTED, _E.ACCEPTED): _S.SUBMITTED,
    (_S.SUBMITTED, _E.SETTLED): _S.SETTLED,
    (_S.SUBMITTED, _E.REFUSED): _S.REJECTED,
    (_S.SUBMITTED, _E.CANCELLED): _S.WITHDRAWING,
    (_S.SETTLED, _E.PUBLISHED): _S.SETTLED,
    (_S.SETTLED, _E.UNWANTED): _S.WITHDRAWING,
    (_S.WITHDRAWING, _E.REMOVED): _S.WITHDRAWN,
    (_S.WITHDRAWN, _E.WANTED_AGAIN): _S.DISCOVERED,
    (_S.REJECTED, _E.WANTED_AGAIN): _S.DISCOVERED,
    (_S.REJECTED, _E.UNWANTED): _S.WITHDRAWING,
}

WITHDRAWAL_REASONS = frozenset(
    {
        Reason.SUPERSEDED,
        Reason.REMOVED_AT_SOURCE,
        Reason.OUT_OF_SCOPE,
        Reason.SAME_BYTES,
        Reason.ERASED,
        Reason.LOST,
    }
)


def next_state(state: State, event: Event) -> State | None:
    """Return the state after ``event``, or None where the event changes nothing any more."""
    return TRANSITIONS.get((state, event))

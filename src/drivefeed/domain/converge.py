"""What should happen next to a document, given what is wanted, what is live, and its imports.

:func:`converge` is pure. It runs inside every transaction that changes ``wanted`` or moves an
import, so that the reminders written by the commit are always the ones that follow from it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from drivefeed.domain.lifecycle import ENDED, Event, State, next_state
from drivefeed.domain.model import Document, Import, Live, with_state
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Moved:
    """An event that convergence caused, with the import before and after it."""

    before: Import
    event: Event
    after: Import


@dataclass(frozen=True, slots=True)
class Due:
    """The stage an import needs next, and when. ``stage`` names a queue."""

    stage: str
    at: int


@dataclass(frozen=True, slots=True)
class Convergence:
    """The outcome: the document as it must be now, moves made, and what is due per import."""

    document: Document
    imports: dict[str, Import]
    moves: tuple[Moved, ...]
    due: dict[str, Due | None]


def converge(document: Document, imports: Iterable[Import], *, now: int) -> Convergence:
    """Settle what follows from the facts; the result is a fixed point of itself."""
    current = {one.import_id: one for one in imports}
    moves: list[Moved] = []

    def move(one: Import, event: Event, reason: Reason | None = None) -> None:
        after = apply(one, event, reason=reason)
        if after is not None:
            moves.append(Moved(one, event, after))
            current[one.import_id] = after

    wanted = current.get(document.wanted) if document.wanted else None
    if wanted is not None and wanted.state is State.WITHDRAWN:
        move(wanted, Event.WANTED_AGAIN)
        wanted = current[wanted.import_id]
    live = _live(document, wanted, current)
    document = replace(document, live=live)
    for one in list(current.values()):
        if one is wanted or one.import_id == document.wanted:
            continue
        reason = Reason.SUPERSEDED if wanted else document.unwanted_reason
        # Hidden content waits for the end of the grace, so that an undo costs nothing.
        is_hidden = one.state is State.SETTLED and wanted is None
        if one.as_live != live and not is_hidden:
            move(one, Event.UNWANTED, reason)
    for one in list(current.values()):
        if one.state is State.SETTLED and one.shown is (one.as_live != live):
            # A publish may be under way from now on, and its commit may be lost: until one is
            # committed, nobody knows what the index shows.
            current[one.import_id] = replace(one, shown=None, revision=one.revision + 1)
    due = {key: next_due(document, one, now=now) for key, one in current.items()}
    return Convergence(document, current, tuple(moves), due)


def _live(document: Document, wanted: Import | None, imports: dict[str, Import]) -> Live | None:
    if wanted is None:
        return None
    if wanted.state is State.SETTLED:
        return wanted.as_live
    # An older version stays searchable until the wanted one is.
    shown = imports.get(document.live.import_id) if document.live else None
    if shown is not None and shown.state is State.SETTLED and shown.as_live == document.live:
        return document.live
    return None


def apply(one: Import, event: Event, *, reason: Reason | None = None) -> Import | None:
    """Return the import after ``event``, or None where the event changes nothing any more."""
    state = next_state(one.state, event)
    if state is None:
        return None
    if event is Event.WANTED_AGAIN:
        return with_state(
            one,
            state,
            round=one.round + 1,
            reason=None,
            shown=None,
            attention=None,
            hold=None,
            backend=None,
            backend_job=None,
            deadline_at=None,
            poll_count=0,
            misplaced=False,
            chunks=None,
        )
    changes: dict[str, object] = {"attention": None, "hold": None}
    if state in {State.WITHDRAWING, State.REJECTED}:
        changes["reason"] = reason
    return with_state(one, state, **changes)


def may_stand_for(twin: Import) -> bool:
    """Tell whether another version with the same bytes may be wanted in a version's place.

    Its bytes must be those its version key promises. An import that was copied while the file
    was being edited may hold the bytes of the *next* version: to let it stand for that one would
    show those bytes again when the file returns to what the key really means.
    """
    return twin.state in _KEEPS_BYTES and twin.integrity != "server_modified"


_KEEPS_BYTES = frozenset({State.STORED, State.SUBMITTED, State.SETTLED})

_STAGES = {
    State.DISCOVERED: "transfer",
    State.STORED: "submit",
    State.WITHDRAWING: "withdraw",
}


def next_due(document: Document, one: Import, *, now: int) -> Due | None:
    """Return which stage an import needs, and when; None where it rests or waits.

    A late backend job is still asked for, because a late success counts.
    """
    if one.state in ENDED or waits(one):
        return None
    if one.state is State.SUBMITTED:
        return Due("poll" if one.backend_job else "submit", now)
    if one.state is not State.SETTLED:
        return Due(_STAGES[one.state], now)
    is_live = one.as_live == document.live
    if one.shown != is_live or (is_live and document.misplaced):
        return Due("publish", now)
    if is_live or one.import_id == document.wanted:
        return None
    return Due("withdraw", document.erase_at if document.erase_at is not None else now)


def is_in_use(document: Document, one: Import) -> bool:
    """Tell whether an import is wanted or live, so that nothing may withdraw it."""
    return document.wanted == one.import_id or document.live == one.as_live


def relieved(one: Import) -> Import:
    """Return the import with nothing that keeps it waiting; one that has ended stays as it is."""
    if one.state in ENDED or (one.attention is None and one.hold is None):
        return one
    return replace(one, attention=None, hold=None, revision=one.revision + 1)


def may_hold_pages(one: Import) -> bool:
    """Tell whether an import may hold pages of a limit: it is under way, or charged in this commit.

    What waits before it was submitted releases them, for nobody knows how long it waits. The
    backend may do what was submitted, whoever is asked meanwhile.
    """
    if one.state in {State.SUBMITTED, State.SETTLED}:
        return True
    return one.state in {State.DISCOVERED, State.STORED} and not waits(one)


def waits(one: Import) -> bool:
    """Tell whether an import waits for a person, or for something that wakes it by itself."""
    if one.hold in {Reason.QUOTA, Reason.PAUSED}:
        return True
    is_late = one.state is State.SUBMITTED and one.attention is Reason.BACKEND_LATE
    return one.attention is not None and not is_late

"""The invariants, each a name, a sentence, what to do, and a check over facts.

What is still under way breaks none of them: each says of what is at rest, or of what may never be.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from drivefeed.domain.lifecycle import State
from drivefeed.services.invariants.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from drivefeed.catalog.audit import Version
    from drivefeed.services.invariants.facts import Facts

_HAS_OBJECT = frozenset({State.STORED, State.SUBMITTED, State.SETTLED})
_HAS_POINTS_FOR_NOW = frozenset(
    {State.DISCOVERED, State.SUBMITTED, State.WITHDRAWING, State.REJECTED}
)
_UNDER_WAY = frozenset({State.DISCOVERED, State.STORED, State.SUBMITTED, State.WITHDRAWING})
_REPAIR = "Take 'drivefeed support-bundle' and report it; nothing was changed."


@dataclass(frozen=True, slots=True)
class Invariant:
    """What must be true.

    Attributes:
        name: in reports and JSON, for what breaks it.
        sentence: what must be true.
        remedy: what to do where it is not.
        check: yields what it found, for each thing that breaks it.
    """

    name: str
    sentence: str
    remedy: str
    check: Callable[[Facts], Iterator[Finding]]


def _rests(one: Version) -> bool:
    return one.due is None and not one.waits


def _of(one: Version, words: str, *, key: bool = False) -> Finding:
    return Finding(
        f"{one.object_key if key else one.name}: {words}",
        document_id=one.document_id,
        import_id=one.import_id,
        round=one.round,
        key=one.object_key if key else None,
    )


def _counted(one: Version, words: str) -> Finding:
    return replace(_of(one, words), expected=one.chunks or 0)


def _not_live(facts: Facts) -> Iterator[Finding]:
    # A version that is held, failed or on its way leaves the one before it in search.
    awaited = {
        one.document_id
        for one in facts.books.versions
        if one.wanted and one.state is not State.SETTLED
    }
    for one in facts.books.versions:
        if not _rests(one):
            continue
        if one.wanted and one.state is State.SETTLED and not one.live:
            yield _of(one, "wanted, and not what search shows")
        if one.live and not one.wanted and one.document_id not in awaited:
            yield _of(one, "what search shows, and not wanted")
        if one.indexed_here and one.state is State.SETTLED and one.shown is not one.live:
            yield _of(one, "nobody knows whether the index shows it, and it is not told")
    for document_id, import_id in facts.books.hidden.items():
        yield Finding(
            f"document {document_id}: shows import {import_id}, which is not settled",
            document_id=document_id,
        )
    for document_id, import_id in facts.books.dangling.items():
        yield Finding(
            f"document {document_id}: wants import {import_id}, which is unknown",
            document_id=document_id,
        )


def _missing_in_store(facts: Facts) -> Iterator[Finding]:
    for one in facts.books.versions:
        size = facts.objects.get(one.object_key)
        moved = one.import_id in facts.moved
        if one.state in _HAS_OBJECT and size != one.size and not moved:
            found = "no object" if size is None else f"an object of {size} bytes"
            yield _of(one, f"{found}, {one.size} bytes are expected", key=True)


def _extra_in_store(facts: Facts) -> Iterator[Finding]:
    known = {
        one.object_key
        for one in facts.books.versions
        if one.state is not State.WITHDRAWN or one.import_id in facts.moved
    }
    yield from (Finding(key, key=key) for key in facts.objects if key not in known)


def _bytes_differ(facts: Facts) -> Iterator[Finding]:
    for one in facts.books.versions:
        read = facts.read.get(one.object_key)
        if read is not None and read != one.sha256:
            yield _of(one, f"SHA-256 {read}, {one.sha256} was copied", key=True)


def _missing_in_index(facts: Facts) -> Iterator[Finding]:
    for one in facts.books.versions:
        if not one.indexed_here or one.import_id in facts.moved:
            continue
        key = (one.import_id, one.round)
        shown, count = facts.rounds.get(key, (False, 0))
        shown = shown and key not in facts.partly_shown
        if one.live and (not shown or count != one.chunks):
            seen = "" if shown else ", not all live" if key in facts.partly_shown else ", not live"
            yield _counted(one, f"{count} points{seen}, {one.chunks} are expected")
        elif one.state is State.SETTLED and not one.live and count < (one.chunks or 0):
            yield _counted(one, f"{count} points, hidden, {one.chunks} are expected")


def _extra_in_index(facts: Facts) -> Iterator[Finding]:
    known = {(one.import_id, one.round): one for one in facts.books.versions}
    for key, (shown, count) in facts.rounds.items():
        if key[0] in facts.moved:
            continue
        one = known.get(key)
        if one is None:
            words = f"import {key[0] or 'unnamed'} round {key[1]}: {count} points"
            yield Finding(words, import_id=key[0], round=key[1])
        elif one.state is State.SETTLED and not one.live:
            # Hidden, and kept whole for as long as its removal can be undone.
            if count > (one.chunks or 0):
                yield _counted(one, f"{count} points, hidden, {one.chunks} are expected")
            elif shown and _rests(one):
                yield _of(one, f"{count} points are shown, and it is not live")
        elif one.state is not State.SETTLED and one.state not in _HAS_POINTS_FOR_NOW:
            yield _of(one, f"{count} points")


def _submitted_twice(facts: Facts) -> Iterator[Finding]:
    for key, count in facts.books.submissions.items():
        if count > 1:
            yield Finding(f"key {key}: {count} jobs that count", import_id=key.partition(":")[0])


def _charged_twice(facts: Facts) -> Iterator[Finding]:
    versions = Counter(one.import_id for one in facts.books.charges)
    contents = Counter((one.document_id, one.sha256) for one in facts.books.charges)
    for import_id, count in versions.items():
        if count > 1:
            yield Finding(f"import {import_id}: {count} entries", import_id=import_id)
    for (document_id, sha256), count in contents.items():
        if count > 1:
            words = f"document {document_id}, {sha256}: {count} entries"
            yield Finding(words, document_id=document_id)


def _not_charged(facts: Facts) -> Iterator[Finding]:
    versions = {one.import_id for one in facts.books.charges}
    contents = {(one.document_id, one.sha256) for one in facts.books.charges}
    for one in facts.books.versions:
        paid = one.import_id in versions or (one.document_id, one.sha256) in contents
        if one.state is State.SETTLED and not paid:
            yield _of(one, "settled, and in no entry")


def _usage(facts: Facts) -> Iterator[Finding]:
    for words in facts.usage:
        yield Finding(words, org=words.partition(":")[0])


def _due_at_rest(facts: Facts) -> Iterator[Finding]:
    for one in facts.books.versions:
        is_done = one.state is State.WITHDRAWN or (one.state is State.REJECTED and one.wanted)
        if one.due is not None and is_done:
            yield _of(one, f"{one.due} is due, and it is {one.state}")


def _forgotten(facts: Facts) -> Iterator[Finding]:
    for one in facts.books.versions:
        if one.state in _UNDER_WAY and _rests(one):
            yield _of(one, f"{one.state}, and nothing is due for it")


def _upload_left_over(facts: Facts) -> Iterator[Finding]:
    if facts.left_over:
        yield Finding(f"unfinished uploads: {facts.left_over}")


INVARIANTS = (
    Invariant(
        "not_live",
        "What search shows is what is wanted.",
        "'drivefeed verify --repair' writes once more what follows from the facts.",
        _not_live,
    ),
    Invariant(
        "missing_in_store",
        "Every stored version has its object, whole.",
        "'drivefeed verify --repair' imports the file again; nothing is charged.",
        _missing_in_store,
    ),
    Invariant(
        "extra_in_store",
        "The store holds no object of a version that ended, and none that nobody knows.",
        "'drivefeed verify --repair' removes what bears a name of ours; remove the rest by hand.",
        _extra_in_store,
    ),
    Invariant(
        "bytes_differ",
        "An object has the bytes that were copied from the source.",
        "'drivefeed verify --repair' imports the file again; find out what changed the object.",
        _bytes_differ,
    ),
    Invariant(
        "missing_in_index",
        "Every chunk of a live version is in the index, and shown.",
        "'drivefeed verify --repair' makes them again; if many are lost, 'drivefeed reindex' does.",
        _missing_in_index,
    ),
    Invariant(
        "extra_in_index",
        "The index holds the chunks of settled versions alone, and shows those that are live.",
        "'drivefeed verify --repair' removes the others.",
        _extra_in_index,
    ),
    Invariant(
        "submitted_twice",
        "A version is submitted once in each round, however often it was tried.",
        _REPAIR,
        _submitted_twice,
    ),
    Invariant(
        "charged_twice",
        "A version is charged once for ever.",
        _REPAIR,
        _charged_twice,
    ),
    Invariant(
        "not_charged",
        "What was imported is in the ledger.",
        _REPAIR,
        _not_charged,
    ),
    Invariant(
        "usage",
        "Counters are the sums of the ledger, and no pages are held for what is at rest.",
        "'drivefeed verify --repair' adds them up anew; 'drivefeed usage recount' tells more.",
        _usage,
    ),
    Invariant(
        "due_at_rest",
        "Nothing is due for what is at rest.",
        "It does no harm and comes to nothing; 'drivefeed verify --repair' clears it.",
        _due_at_rest,
    ),
    Invariant(
        "forgotten",
        "What is under way has its next step due, or says what it waits for.",
        "'drivefeed verify --repair' makes the next step due.",
        _forgotten,
    ),
    Invariant(
        "upload_left_over",
        "No unfinished upload is left in the store.",
        "They are swept each hour by a running drivefeed; look at its log if they stay.",
        _upload_left_over,
    ),
)

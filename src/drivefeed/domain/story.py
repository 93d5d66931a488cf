"""The story of a version, event by event, in the words that every place uses. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_WORDS: Final = {
    "admitted": "seen at the source and admitted",
    "same_bytes": "found to hold the same bytes as another version",
    "stored": "copied to the object store",
    "submitting": "handed to the ingestion backend",
    "accepted": "accepted by the backend",
    "settled": "read and indexed",
    "refused": "refused",
    "cancelled": "called back from the backend",
    "unwanted": "no longer wanted",
    "removed": "erased from index and store",
    "wanted_again": "wanted again",
    "attention": "waits for a person",
    "attempt_failed": "an attempt failed",
    "retry": "somebody asked to try it again",
    "resumed": "its connection was resumed",
    "cured": "the sign-in or the right that it waited for is there again",
    "moved": "moved",
}
_BAD: Final = frozenset({"refused", "attention"})
_DOUBTFUL: Final = frozenset({"attempt_failed"})
_WITH_REASON: Final = frozenset({"refused", "unwanted", "attention"})
_WITH_DETAIL: Final = frozenset(
    {"settled", "refused", "attention", "attempt_failed", "retry", "moved"}
)


@dataclass(frozen=True, slots=True)
class Told:
    """An event in words.

    Attributes:
        words: what happened.
        more: why, and the details; empty, or to be written right behind the words.
        tone: ``bad`` for an end or a wait for a person, ``doubtful`` for what may pass, else empty.
    """

    words: str
    more: str
    tone: str

    def __str__(self) -> str:
        """Return the whole sentence."""
        return self.words + self.more


def told(event: Mapping[str, Any]) -> Told:
    """Return a row of ``import_events`` in words."""
    name, detail = str(event["event"]), str(event["detail"] or "")
    if name == "published":
        if detail == "shown":
            return Told("shown by search", "", "")
        return Told("hidden from search", f" ({event['reason']})" if event["reason"] else "", "")
    more = ""
    if name in _WITH_REASON and event["reason"]:
        more += f" ({event['reason']})"
    if name in _WITH_DETAIL and detail:
        more += f": {detail}"
    tone = "bad" if name in _BAD else "doubtful" if name in _DOUBTFUL else ""
    return Told(_WORDS.get(name, name), more, tone)

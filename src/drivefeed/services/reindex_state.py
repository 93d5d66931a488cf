"""How a reindex stands, for people and programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class ReindexState:
    """How a reindex stands.

    Attributes:
        state: ``idle``, ``building``, or ``held`` where files could not be read again.
        active: what search uses, in words.
        building: what is being built, in words; empty while idle.
        trouble: what keeps it from going on, as a sentence.
        unreadable: files that could not be read again, each with its reason.
        collection: the name of what search uses.
    """

    state: str
    active: str
    building: str = ""
    done: int = 0
    total: int = 0
    failed: int = 0
    trouble: str = ""
    unreadable: tuple[str, ...] = ()
    collection: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "state": self.state,
            "active": self.active,
            "building": self.building,
            "done": self.done,
            "total": self.total,
            "failed": self.failed,
            "trouble": self.trouble,
            "unreadable": list(self.unreadable),
            "collection": self.collection,
        }

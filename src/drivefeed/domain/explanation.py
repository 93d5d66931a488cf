"""What an explanation of a reason consists of."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What a reason says about the file or the part it is attached to."""

    SKIPPED = "skipped"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    HOLD = "hold"
    ATTENTION = "attention"


@dataclass(frozen=True, slots=True)
class Explanation:
    """A reason in words: its kind, what it means, and what to do about it."""

    kind: Kind
    meaning: str
    remedy: str

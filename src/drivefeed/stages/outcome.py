"""What a stage may say when it is done. The runner alone commits it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from drivefeed.catalog.ledger import OURS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from drivefeed.catalog.quota import Need
    from drivefeed.domain.lifecycle import Event
    from drivefeed.domain.reasons import Reason


@dataclass(frozen=True, slots=True)
class Advance:
    """Something happened to the import.

    Attributes:
        round: the round of the import that it happened to; filled in where the stage ran.
        need: the pages that a stored import needs, where there is a limit.
        usage_owner: who counts the usage of a settled one.
    """

    event: Event
    facts: Mapping[str, Any] = field(default_factory=dict)
    reason: Reason | None = None
    detail: str = ""
    same_as: str | None = None
    round: int | None = None
    need: Need | None = None
    usage_owner: str = OURS


@dataclass(frozen=True, slots=True)
class Again:
    """Do the same stage again after ``after_ms``; no attempt is used, no slot is held."""

    after_ms: int
    hold: Reason | None = None
    detail: str = ""
    polled: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """A person has to look. ``again_after_ms`` keeps the stage due all the same."""

    reason: Reason
    detail: str
    again_after_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Rest:
    """Nothing more is due for the subject."""


Outcome = Advance | Again | Ask | Rest

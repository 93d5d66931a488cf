"""What the demo shows at one instant, whatever it is shown on."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from drivefeed.catalog.progress import Progress, Standing
from drivefeed.domain.lifecycle import State

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from drivefeed.cli.happenings import Happening

_ON_THE_WAY = frozenset({Standing.IN_PROGRESS, Standing.STALE})
_STEPS = {
    "to be copied": State.DISCOVERED,
    "copied, to be submitted": State.STORED,
    "being read and indexed": State.SUBMITTED,
}


@dataclass(frozen=True, slots=True)
class Lately:
    """Something that happened, and when, on the clock of this machine."""

    clock: str
    happening: Happening


@dataclass(slots=True)
class Scene:
    """Everything there is to show.

    Attributes:
        seconds: since the start.
        files_a_second: files that came to an end, over the last seconds.
        seconds_left: an estimate, or None where there is none worth its name.
        limits: how the page limits stand, in markup; empty where there is none.
        notices: what somebody did to the demo, in markup.
        down: parts that do not answer, with a sentence each.
        lately: what happened, oldest first.
        keys: what each key does now; empty where there are none.
    """

    served: Path
    seconds: float = 0.0
    found: Sequence[Progress] = ()
    files_a_second: float = 0.0
    seconds_left: float | None = None
    limits: Sequence[str] = ()
    notices: Sequence[str] = ()
    down: Mapping[str, str] = field(default_factory=dict)
    lately: Sequence[Lately] = ()
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_listed(self) -> bool:
        """Whether the first enumeration is complete, so that the number of files is final."""
        return bool(self.found) and all(one.listed for one in self.found)

    @property
    def total(self) -> int:
        """All files found so far."""
        return sum(one.found for one in self.found)

    @property
    def moving(self) -> int:
        """Files on their way, among them those whose older version is still shown."""
        return sum(one.counts[standing] for one in self.found for standing in _ON_THE_WAY)

    @property
    def ended(self) -> int:
        """Files that came to an end: searchable, skipped or failed; what is held goes on later."""
        return self.total - self.moving - self.count(Standing.HELD)

    def count(self, standing: Standing) -> int:
        """Return how many files stand there."""
        return sum(one.counts[standing] for one in self.found)

    def steps(self) -> dict[str, int]:
        """Return how many files are at each step of the way, the last one being searchable."""
        counts = dict.fromkeys(_STEPS, 0)
        for name, state in _STEPS.items():
            counts[name] = sum(
                files
                for one in self.found
                for (standing, why), files in one.reasons.items()
                if why == state and standing in _ON_THE_WAY
            )
        return counts | {"searchable": self.count(Standing.SEARCHABLE)}


class Display(Protocol):
    """Where a scene is shown."""

    def show(self, scene: Scene) -> None:
        """Show a scene in place of the last one."""
        ...

    def close(self) -> None:
        """Leave the last scene as it is."""
        ...

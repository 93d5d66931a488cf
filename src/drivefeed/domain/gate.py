"""Whether new downloads may begin: room on the disks, and how much waits to be indexed. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from drivefeed.domain.reasons import Reason
from drivefeed.domain.words import size_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MIB: Final = 1024**2
LEAST_ROOM: Final = 128 * MIB
"""Free bytes below which nothing at all is written to the embedded index, whose files are mapped
into memory: a write into a full disk would not fail, it would kill the process. Downloads stop
before that."""


@dataclass(frozen=True, slots=True)
class Marks:
    """Below ``low`` free bytes downloads hold, at ``high`` they go on."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Room:
    """How much is free in one place.

    Attributes:
        name: what people call it.
        folder: where it is.
    """

    name: str
    folder: str
    free: int
    marks: Marks

    def is_short(self, *, was_short: bool) -> bool:
        """Whether downloads hold; one that held goes on only at the high mark."""
        return self.free < (self.marks.high if was_short else self.marks.low)

    @property
    def words(self) -> str:
        """How much is free where, and how much it takes for downloads to go on."""
        return (
            f"Only {size_of(self.free)} free in the {self.name} '{self.folder}'; downloads go on "
            f"at {size_of(self.marks.high)}."
        )


@dataclass(frozen=True, slots=True)
class Backlog:
    """What was stored and is not indexed yet.

    Attributes:
        of: by organization: files and bytes.
    """

    of: Mapping[str, tuple[int, int]]

    @property
    def files(self) -> int:
        """All files."""
        return sum(files for files, _ in self.of.values())

    @property
    def size(self) -> int:
        """All bytes."""
        return sum(size for _, size in self.of.values())


@dataclass(frozen=True, slots=True)
class BacklogMarks:
    """At so many files or bytes the backlog's transfers hold, until below ``resume_percent``."""

    files: int
    size: int
    resume_percent: int = 75


@dataclass(frozen=True, slots=True)
class Gate:
    """What may not begin to be downloaded now.

    Attributes:
        reason: why; None where everything may.
        words: the same for people.
        short: names of the places that are short of room.
        orgs: organizations whose backlog holds; nobody's fresh changes do.
        since: when it was closed.
    """

    reason: Reason | None = None
    words: str = ""
    short: frozenset[str] = frozenset()
    orgs: frozenset[str] = frozenset()
    since: int = 0

    @property
    def is_shut(self) -> bool:
        """Whether nothing at all may begin."""
        return self.reason is Reason.WAITING_FOR_DISK


OPEN: Final = Gate()


def gate_after(
    gate: Gate, rooms: Sequence[Room], backlog: Backlog, marks: BacklogMarks, *, now: int
) -> Gate:
    """Return the gate as it is to be.

    Where too much waits to be indexed, those hold who have more than their share in it, so that
    one organization's many files do not keep another's few from being taken.
    """
    short = [one for one in rooms if one.is_short(was_short=one.name in gate.short)]
    if short:
        return Gate(
            reason=Reason.WAITING_FOR_DISK,
            words=" ".join(one.words for one in short),
            short=frozenset(one.name for one in short),
            since=gate.since if gate.is_shut else now,
        )
    held = _over_their_share(gate, backlog, marks)
    if not held:
        return OPEN
    return Gate(
        reason=Reason.WAITING_FOR_INDEXING,
        words=f"{backlog.files:,} files with {size_of(backlog.size)} are stored and wait to be "
        "indexed.",
        orgs=held,
        since=gate.since if gate.orgs else now,
    )


def _over_their_share(gate: Gate, backlog: Backlog, marks: BacklogMarks) -> frozenset[str]:
    percent = marks.resume_percent if gate.orgs else 100
    is_over = (
        100 * backlog.files >= percent * marks.files or 100 * backlog.size >= percent * marks.size
    )
    if not is_over:
        return frozenset()
    # One more than there are: somebody who has nothing in it yet is not held.
    shares = len(backlog.of) + 1
    return frozenset(
        org_id
        for org_id, (files, size) in backlog.of.items()
        if files * shares > backlog.files or size * shares > backlog.size
    )

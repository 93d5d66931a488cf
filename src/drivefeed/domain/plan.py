"""What connecting a folder, or changing its policy, will do: counted before anything is done. Pure.

The counting takes the verdicts of the code that admits, so that its numbers are what then happens
as long as nobody changes a file in between.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from drivefeed.domain.metering import RU_OF_A_DOWNLOAD, estimated_pages
from drivefeed.domain.scope import LABELLED_TYPES, ending

if TYPE_CHECKING:
    from drivefeed.domain.model import Policy
    from drivefeed.domain.reasons import Reason

FIRST_NAMES: Final = 20


class Emptiness(StrEnum):
    """Why a plan has no file to import: three different things, each with its own sentence."""

    NOTHING_FOUND = "nothing_found"
    NOTHING_PERMITTED = "nothing_permitted"
    NOTHING_ELIGIBLE = "nothing_eligible"


@dataclass(frozen=True, slots=True)
class TypeSum:
    """The files of one type that would be imported; ``pages`` is an estimate."""

    ending: str
    files: int
    size: int
    pages: int


@dataclass(frozen=True, slots=True)
class SkipSum:
    """The files that would be skipped for one reason."""

    reason: Reason
    files: int
    size: int


@dataclass(frozen=True, slots=True)
class Change:
    """What another policy does to a folder that is connected already.

    Attributes:
        options: what changes, as (option, before, after).
        added: files that come in.
        returning: of those, the ones that are not erased yet, and are shown again at once.
        removed: files that this connection lets go.
        hidden: of those, the ones that search shows now and will not show any more, at once.
        kept: of those, the ones that stay, because another connection wants them too.
        braked: whether so many removals stop and ask before anything is hidden.
    """

    options: tuple[tuple[str, str, str], ...] = ()
    added: int = 0
    returning: int = 0
    removed: int = 0
    hidden: int = 0
    kept: int = 0
    braked: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What a connection will import.

    Attributes:
        account_id: the account through which the drive is read.
        remote_drive_id: the drive as Microsoft names it.
        drive_id: the drive in the catalog.
        connection_id: the connection, where the folder is connected already.
        folder: path of the folder below the drive's root; empty for the whole drive.
        policy: what the numbers are for.
        found: files below the folder, whatever their fate.
        files, size: those that will be imported, and their bytes as listed.
        unsized: of those, the ones whose size the source did not tell.
        present: of those, the ones whose present version was copied already, for this or another
            connection: they cost no download.
        pages: an estimate for all of them; see :mod:`drivefeed.domain.metering`.
        fresh_pages: of these, the ones of files that were not copied yet.
        free_pages: what is left of the organization's page limit; None where it has none, and
            where the backend keeps the books itself.
        shared: of those, the ones with permissions of their own: as they were told where somebody
            asked, and else those with Graph's ``shared`` facet, which what merely lies in a shared
            folder has as well; None where the tree was listed before we asked for it.
        labelled: of those, the ones with a sensitivity label. Always None: Graph tells labels
            only file by file (extractSensitivityLabels), never in a listing, and a plan asks for
            no file.
        units: Microsoft's resource units for what has to be downloaded.
        minutes: how long those take at our share of the limit; bandwidth and reading come on top.
        first: the first names by path, relative to the folder.
        emptiness: why there is nothing to import, where that is so.
        change: what it changes, where the folder is connected already.
        listed_at: when the tree that was counted was up to date (milliseconds since the epoch).
    """

    org_id: str
    account_id: str
    remote_drive_id: str
    drive_id: str
    drive_name: str
    root_item_id: str
    folder: str
    policy: Policy
    listed_at: int
    connection_id: str | None = None
    connection_name: str | None = None
    found: int = 0
    files: int = 0
    size: int = 0
    unsized: int = 0
    present: int = 0
    pages: int = 0
    fresh_pages: int = 0
    free_pages: int | None = None
    shared: int | None = 0
    labelled: int | None = None
    units: int = 0
    minutes: float = 0.0
    types: tuple[TypeSum, ...] = ()
    skipped: tuple[SkipSum, ...] = ()
    first: tuple[str, ...] = ()
    emptiness: Emptiness | None = None
    change: Change | None = None

    @property
    def can_be_labelled(self) -> int:
        """Files of a type that can carry a sensitivity label: no more than these have one."""
        return sum(one.files for one in self.types if one.ending in LABELLED_TYPES)

    @property
    def lacking_pages(self) -> int:
        """Pages for which there is probably no room; files wait then, the latest ones first."""
        return 0 if self.free_pages is None else max(0, self.fresh_pages - self.free_pages)


@dataclass(slots=True)
class Tally:
    """Counts verdicts; what it holds at the end becomes a plan."""

    found: int = 0
    files: int = 0
    size: int = 0
    unsized: int = 0
    present: int = 0
    fresh_pages: int = 0
    shared: int = 0
    sharing_unknown: bool = False
    first: list[str] = field(default_factory=list)
    _types: dict[str, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0, 0]))
    _skipped: dict[Reason, list[int]] = field(default_factory=lambda: defaultdict(lambda: [0, 0]))

    def skip(self, reason: Reason, size: int | None) -> None:
        """Count a file that is skipped."""
        self.found += 1
        one = self._skipped[reason]
        one[0] += 1
        one[1] += size or 0

    def take(self, path: str, size: int | None, *, shared: bool | None, present: bool) -> None:
        """Count a file that is admitted.

        Args:
            path: relative to the connected folder.
            size: bytes as listed.
            shared: whether it has permissions of its own; None where that is not known.
            present: whether its present version was copied already.
        """
        self.found += 1
        self.files += 1
        self.size += size or 0
        self.unsized += size is None
        self.present += present
        self.shared += bool(shared)
        self.sharing_unknown = self.sharing_unknown or shared is None
        kind = ending(path.rpartition("/")[2])
        one = self._types[kind]
        one[0] += 1
        one[1] += size or 0
        pages = estimated_pages(kind, size)
        one[2] += pages
        self.fresh_pages += 0 if present else pages
        if len(self.first) < FIRST_NAMES or path < self.first[-1]:
            insort(self.first, path)
            del self.first[FIRST_NAMES:]

    @property
    def types(self) -> tuple[TypeSum, ...]:
        """Files by type, the most frequent first."""
        sums = [TypeSum(kind, *one) for kind, one in self._types.items()]
        return tuple(sorted(sums, key=lambda one: (-one.files, one.ending)))

    @property
    def skipped(self) -> tuple[SkipSum, ...]:
        """Skipped files by reason, the most frequent first."""
        sums = [SkipSum(reason, *one) for reason, one in self._skipped.items()]
        return tuple(sorted(sums, key=lambda one: (-one.files, one.reason)))

    @property
    def pages(self) -> int:
        """Pages of all admitted files, estimated."""
        return sum(one[2] for one in self._types.values())

    @property
    def units(self) -> int:
        """Resource units of what has to be downloaded."""
        return (self.files - self.present) * RU_OF_A_DOWNLOAD

"""Watches the disks and what waits to be indexed, and says which downloads may begin."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from drivefeed.catalog.gate import STALE_AFTER_MS, backlog_of, tell_gate
from drivefeed.domain.gate import OPEN, Gate, Room, gate_after
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.gate import BacklogMarks, Marks

LOOK_SECONDS = 2.0
_TELL_AGAIN_MS = STALE_AFTER_MS // 5

_log = log("gate")


@dataclass(frozen=True, slots=True)
class Place:
    """A folder whose disk must not fill up.

    Attributes:
        name: what people call it.
    """

    name: str
    folder: Path
    marks: Marks


def rooms_of(places: Sequence[Place]) -> list[Room]:
    """Look at the disk of each place; of those on one disk with the same marks, at the first.

    A folder that is not there yet counts as the nearest one above it. It blocks for as long as
    the file system takes to answer.
    """
    found: dict[tuple[int, Marks], Room] = {}
    for place in places:
        there = existing(place.folder)
        key = (there.stat().st_dev, place.marks)
        if key not in found:
            free = shutil.disk_usage(there).free
            found[key] = Room(place.name, str(place.folder), free, place.marks)
    return list(found.values())


def existing(folder: Path) -> Path:
    """Return the folder, or the nearest one above it that exists."""
    folder = folder.absolute()
    return next(one for one in (folder, *folder.parents) if one.exists())


def is_mounted_apart(place: Place, folder: Path) -> bool:
    """Whether a place lies on another disk than a folder."""
    return existing(place.folder).stat().st_dev != existing(folder).stat().st_dev


class Gatekeeper:
    """Keeps the gate of one process up to date.

    Args:
        host: names this machine in what is told to others.

    Attributes:
        gate: what may not begin now; asked by the relay and by transfers, which must be quick.
    """

    def __init__(
        self, catalog: Catalog, places: Sequence[Place], marks: BacklogMarks, *, host: str
    ) -> None:
        self.gate = OPEN
        self._catalog = catalog
        self._places = places
        self._marks = marks
        self._host = host
        self._told: Gate | None = None
        self._told_at = 0

    async def tick(self) -> None:
        """Look, and tell where something changed."""
        rooms = await asyncio.to_thread(rooms_of, self._places)
        # One more than the mark shows that it is reached, whatever there is beyond.
        backlog = await backlog_of(self._catalog, most=self._marks.files + 1)
        now = self._catalog.clock.now()
        before, self.gate = self.gate, gate_after(self.gate, rooms, backlog, self._marks, now=now)
        self._log(before)
        await self._tell(now)

    def _log(self, before: Gate) -> None:
        if before.reason is self.gate.reason:
            return
        if self.gate.reason is None:
            _log.info("downloads_go_on", after=before.reason)
        elif self.gate.is_shut:
            _log.warning("downloads_hold", reason=self.gate.reason, words=self.gate.words)
        else:
            _log.info("downloads_hold", reason=self.gate.reason, words=self.gate.words)

    async def _tell(self, now: int) -> None:
        told = self._told
        is_same = told is not None and (told.reason, told.short, told.orgs) == (
            self.gate.reason,
            self.gate.short,
            self.gate.orgs,
        )
        if is_same and (self.gate.reason is None or now - self._told_at < _TELL_AGAIN_MS):
            return
        await tell_gate(self._catalog, self._host, self.gate)
        self._told, self._told_at = self.gate, now

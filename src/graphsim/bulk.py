"""A drive of any size that needs neither disk nor memory: what nobody changed is computed."""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from graphsim.bodies import Body, BytesBody
from graphsim.bulk_layout import BulkLayout
from graphsim.bulk_tree import BulkTree
from graphsim.drives import MemoryDrive
from graphsim.fast_rendering import FastFiles
from graphsim.items import Item, Kind, Profile, drive_id

if TYPE_CHECKING:
    import msgspec

    from graphsim.clock import Clock
    from graphsim.seals import Seals

_MIX = ("replace",) * 6 + ("rename",) * 2 + ("create", "delete")
"""What of ten changes is what."""


class BulkDrive(MemoryDrive):
    """A drive in memory that begins with generated files.

    Args:
        name: Shown as the drive's name; its id follows from it.
        profile: The kind of drive.
        seals: Makes delta tokens.
        clock: The time of changes.
        files: How many files it begins with.
        folders: In how many folders.

    Raises:
        ValueError: As for :class:`graphsim.bulk_layout.BulkLayout`.
    """

    def __init__(
        self,
        name: str,
        profile: Profile,
        seals: Seals,
        clock: Clock,
        *,
        files: int,
        folders: int,
    ) -> None:
        identifier = drive_id(profile, f"bulk:{name}")
        self.layout = BulkLayout(profile, identifier, files, folders, clock.now())
        tree = BulkTree(self.layout, profile, identifier, clock)
        super().__init__(name, profile, seals, clock, identifier=identifier, tree=tree)
        self._fast = FastFiles(self)

    def raw(self, item: Item, select: str | None) -> msgspec.Raw | None:
        """Return a file of a delta page as JSON; see :class:`FastFiles`."""
        return self._fast.raw(item, select)

    async def open(self, item: Item) -> tuple[Item, Body]:
        """Open a file's content; see :meth:`graphsim.drive.Drive.open`."""
        ordinal = self.layout.ordinal_of(item.id)
        if ordinal is not None and item.id not in self._bodies and item.kind is Kind.FILE:
            return self.tree.items[item.id], BytesBody(self.layout.body(ordinal))
        return await super().open(item)

    def change(self, count: int, seed: int = 0) -> Counter[str]:
        """Make many changes, spread over the drive: six of ten are new contents.

        Args:
            count: How many.
            seed: Which files are met.

        Returns:
            How many of each kind were made.
        """
        made: Counter[str] = Counter()
        number = 0
        while made.total() < count:
            drawn = hashlib.blake2b(f"{seed}:{number}".encode(), digest_size=8).digest()
            number += 1
            first = self.layout.folders + 2
            ordinal = first + int.from_bytes(drawn[:6], "big") % self.layout.files
            what = _MIX[drawn[6] % len(_MIX)]
            item = self.tree.live(self.layout.id_of(ordinal))
            if item is not None:
                self._do(what, item, f"{seed} {number}")
                made[what] += 1
        return made

    def _do(self, what: str, item: Item, mark: str) -> None:
        if what == "replace":
            self.replace(item.id, f"Document of change {mark}.\n".encode())
        elif what == "rename":
            self.rename(item.id, f"renamed {mark}.txt")
        elif what == "create":
            self.create_file(
                f"new {mark}.txt", f"A new document {mark}.\n".encode(), item.parent_id
            )
        else:
            self.delete(item.id)

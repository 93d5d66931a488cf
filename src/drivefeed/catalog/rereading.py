"""Items that were asked for by id: their answers go into the tree, and are decided as others are.

A listing that disagrees with the tree proves nothing. An item's own answer does, and it takes the
way of a page: its row is written and marked, and the settling of the drive decides, with grace,
brake and all. Nothing else changes a document.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import update

from drivefeed.catalog.sources import drive_in, wake_drive
from drivefeed.catalog.tables import drives
from drivefeed.catalog.tree import known_items, save_items
from drivefeed.domain.delta import TreeItem, plan_page
from drivefeed.domain.identity import Fingerprint, changed
from drivefeed.domain.remote import RemoteItem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from drivefeed.catalog.engine import Catalog


@dataclass(frozen=True, slots=True)
class Answer:
    """What an item said of itself.

    Attributes:
        before: its row when it was asked for; None without one.
        remote: what it is; None where the source says that there is none.
    """

    item_id: str
    before: TreeItem | None
    remote: RemoteItem | None

    def state(self, row: TreeItem | None) -> str:
        """Return ``same``, ``gone``, ``unknown`` or ``differs``, as the row should be read."""
        if self.remote is None:
            return "same" if row is None or row.deleted else "gone"
        if row is None:
            return "unknown"
        return "differs" if differs(row, self.remote) else "same"


def differs(row: TreeItem, item: RemoteItem) -> bool:
    """Tell whether a row says otherwise than an item what calls for a decision.

    A hash that no decision was made by yet would hide the next change, so it counts as well.
    """
    if changed(Fingerprint(row.quick_xor, row.etag), Fingerprint.of(item)):
        return True
    known = {row.item_id: replace(row, dirty=False)}
    return bool(plan_page([item], known, generation=row.generation).fresh)


async def tree_rows(
    catalog: Catalog, drive_id: str, item_ids: Sequence[str]
) -> dict[str, TreeItem]:
    """Return the rows of some items, tombstones included."""
    async with catalog.read() as connection:
        return await known_items(connection, drive_id, item_ids)


async def take_answers(catalog: Catalog, drive_id: str, answers: Sequence[Answer]) -> int:
    """Write answers into the tree, and have the drive decide about their items.

    A row that changed since its item was asked for stays: whatever changed it is newer.

    Returns:
        How many rows were written.
    """
    if not answers:
        return 0
    now = catalog.clock.now()
    async with catalog.write("reread", beside=True) as connection:
        drive = await drive_in(connection, drive_id, lock=True)
        known = await known_items(connection, drive_id, [one.item_id for one in answers])
        rows = [
            row
            for one in answers
            if _same(known.get(one.item_id), one.before)
            for row in _rows(one, known.get(one.item_id), drive.generation)
        ]
        if not rows:
            return 0
        await save_items(connection, drive_id, rows)
        if drive.between_rounds:
            # A round that is under way decides about them at its end.
            await connection.execute(
                update(drives).where(drives.c.id == drive_id).values(settling=True)
            )
        await wake_drive(connection, drive, due_at=now)
    return len(rows)


def _same(row: TreeItem | None, before: TreeItem | None) -> bool:
    if row is None or before is None:
        return row is before
    return replace(row, dirty=False) == replace(before, dirty=False)


def _rows(one: Answer, row: TreeItem | None, generation: int) -> list[TreeItem]:
    known = {} if row is None else {one.item_id: row}
    item = one.remote or RemoteItem(one.item_id, deleted=True)
    plan = plan_page([item], known, generation=generation)
    found = list(plan.rows)
    if not found:
        # A connection may know what the tree does not, or the tombstone was not decided about.
        found = [replace(row or TreeItem(one.item_id), deleted=True, generation=generation)]
    return [replace(each, dirty=True) for each in found]

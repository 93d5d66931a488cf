"""The part of the certificate that asks the source: is every file known, and decided rightly.

Each drive is listed once, whatever the number of its connections
(:mod:`drivefeed.services.drive_check`); what was found is then told for each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from drivefeed.catalog.listing import paths_of
from drivefeed.catalog.scratch import Scratch
from drivefeed.catalog.second_look import covered_among, left_behind, misjudged
from drivefeed.catalog.sources import fetch_drive
from drivefeed.domain.words import count_of
from drivefeed.services.drive_check import DriveCheck
from drivefeed.services.invariants import Finding

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.scratch_rows import Suspect
    from drivefeed.domain.model import Connection
    from drivefeed.ports import Source

_CHUNK: Final = 500
_KIND: Final = {
    "unknown": "missing_in_catalog",
    "gone": "extra_in_catalog",
    "differs": "changed_at_source",
}
_WORDS: Final = {
    "unknown": "the tree does not know it",
    "gone": "it is not at the source any more",
    "differs": "the tree knows it otherwise",
}


class Notes(Protocol):
    """What takes down what was found; a certificate."""

    remarks: list[str]
    listed: dict[str, int]

    def note(self, kind: str, one: Finding) -> None:
        """Record a difference."""
        ...


async def compare_source(
    catalog: Catalog, source: Source, connections: Sequence[Connection], notes: Notes
) -> None:
    """List the drives of connections, and compare what they have with what the catalog knows.

    Raises:
        Transient, Throttled, PartDown, NeedsAttention: the source does not answer.
    """
    for drive_id in dict.fromkeys(one.drive_id for one in connections):
        mine = [one for one in connections if one.drive_id == drive_id]
        scratch = Scratch()
        try:
            check = DriveCheck(catalog, source, scratch, drive_id, mends=False)
            while await check.step(await fetch_drive(catalog, drive_id)):
                pass
            await _tell(catalog, check, mine, notes)
        finally:
            await scratch.aclose()


async def _tell(
    catalog: Catalog, check: DriveCheck, connections: Sequence[Connection], notes: Notes
) -> None:
    unclear = (await check.result()).unclear
    if unclear:
        notes.remarks.append(
            f"{count_of(unclear, 'item')} of the drive gave no clear answer: the listing told of "
            "them otherwise than the catalog, and they were not asked for, or did not answer."
        )
    for each in connections:
        notes.listed[each.connection_id] = await check.scratch.files_below(each.root_item_id)
        await _tell_suspects(catalog, check, each, notes)
        await _tell_decisions(catalog, check, each, notes)
    async for batch in _settled(check):
        for one in batch:
            if not one.told and one.state in _KIND:
                # A folder, or a file that no connection has: no file is wrong, the tree is.
                path, _ = await check.scratch.place_of(one.item_id)
                notes.note(
                    "tree_differs",
                    Finding(
                        f"{path}: {_WORDS[one.state]}",
                        item_id=one.item_id,
                        drive_id=check.drive_id,
                        path=path,
                    ),
                )


async def _settled(check: DriveCheck) -> AsyncIterator[list[Suspect]]:
    after = ""
    while batch := await check.scratch.settled(after, _CHUNK):
        yield batch
        after = batch[-1].item_id


async def _tell_suspects(
    catalog: Catalog, check: DriveCheck, each: Connection, notes: Notes
) -> None:
    """Note what differs of a connection's files."""
    async for batch in _settled(check):
        ids = [one.item_id for one in batch if one.state in _KIND]
        covered = await covered_among(catalog, each.connection_id, ids)
        known = await paths_of(catalog, each.connection_id, list(covered))
        told: list[str] = []
        for one in batch:
            if one.state not in _KIND:
                continue
            path, is_below = await check.scratch.place_of(one.item_id, each.root_item_id)
            is_file = await check.scratch.is_file(one.item_id)
            if one.item_id not in covered and not (is_below and is_file):
                continue
            kind = _KIND[one.state]
            if one.item_id not in covered:
                kind = "missing_in_catalog"
            elif one.state == "differs" and is_file and not is_below:
                kind = "extra_in_catalog"
            name = path if is_below else known.get(one.item_id, path)
            told.append(one.item_id)
            notes.note(kind, _finding(each, one.item_id, name, name))
        await check.scratch.mark_told(told)


async def _tell_decisions(
    catalog: Catalog, check: DriveCheck, each: Connection, notes: Notes
) -> None:
    """Note files about which the connection says what it should not."""
    kept = 0
    async for left in left_behind(catalog, each):
        if await check.scratch.is_told(left.item_id):
            continue
        if left.known and not left.asked:
            kept += 1
            continue
        name = left.path or left.item_id
        notes.note("extra_in_catalog", _finding(each, left.item_id, name, name, asks=left.asked))
    if kept:
        notes.remarks.append(
            f"'{each.name}' keeps {count_of(kept, 'file')} that the source does not have there any "
            "more, as it was decided."
        )
    async for one in misjudged(catalog, each):
        if await check.scratch.is_told(one.item_id):
            continue
        path, _ = await check.scratch.place_of(one.item_id, each.root_item_id)
        finding = _finding(each, one.item_id, path, f"{path}: {one.words}", one.document_id)
        notes.note("misjudged", finding)


def _finding(
    each: Connection,
    item_id: str,
    path: str,
    words: str,
    document_id: str | None = None,
    *,
    asks: bool = False,
) -> Finding:
    return Finding(
        words,
        document_id=document_id,
        item_id=item_id,
        drive_id=each.drive_id,
        path=path,
        connection_id=each.connection_id,
        asks=asks,
    )

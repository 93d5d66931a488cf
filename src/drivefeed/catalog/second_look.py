"""Decisions looked at once more: what a connection should say of its files, and what it says.

Nothing is changed. The rules are those by which the decisions were made
(:mod:`drivefeed.catalog.deciding`); what is still to be decided is left out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import or_, select

from drivefeed.catalog.admission import Admission, aliases_of
from drivefeed.catalog.deciding import FOLDERS, forgotten_items, verdict_of
from drivefeed.catalog.dialect import batches
from drivefeed.catalog.listing import relative_path
from drivefeed.catalog.roots import rooted_connections
from drivefeed.catalog.sources import drive_in
from drivefeed.catalog.tables import coverage, documents
from drivefeed.catalog.tree import items_after, known_items, lineages

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping, Sequence

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.deciding import Verdict
    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.catalog.tree_lines import Lineage
    from drivefeed.domain.delta import TreeItem
    from drivefeed.domain.model import Connection

_CHUNK = 500


@dataclass(frozen=True, slots=True)
class Misjudged:
    """A file of which a connection says something else than it should.

    Attributes:
        words: what differs.
    """

    item_id: str
    document_id: str
    words: str


@dataclass(frozen=True, slots=True)
class Left:
    """A file that a connection has and the tree does not, or not any more.

    Attributes:
        asked: whether a person is asked about it, or its removal is to be applied.
        known: whether the tree knows it, as removed or elsewhere.
        path: where the tree has or had it.
    """

    item_id: str
    asked: bool
    known: bool
    path: str


async def misjudged(catalog: Catalog, each: Connection) -> AsyncIterator[Misjudged]:
    """Yield the files about which a connection says something else than it should.

    A drive with a round under way is left out: its decisions are still to be made.
    """
    after: str | None = None
    while True:
        async with catalog.read() as connection:
            drive = await drive_in(connection, each.drive_id)
            is_calm = drive.between_rounds and not drive.settling
            if not is_calm or not await rooted_connections(connection, drive, [each]):
                return
            found = await items_after(connection, each.drive_id, after, limit=_CHUNK)
            wrong = await _misjudged_in(connection, drive, each, found)
        for one in wrong:
            yield one
        if len(found) < _CHUNK:
            return
        after = found[-1].item_id


async def _misjudged_in(
    connection: AsyncConnection, drive: Drive, each: Connection, found: Sequence[TreeItem]
) -> list[Misjudged]:
    files = [one for one in found if one.kind not in FOLDERS and not one.dirty]
    lines = await lineages(connection, drive.drive_id, files)
    forgotten = await forgotten_items(connection, drive, files)
    covered = await _coverage(connection, each.connection_id, [one.item_id for one in files])
    known = await _documents(connection, drive, [one.item_id for one in files])
    other = await aliases_of(connection, [Admission.import_id_of(drive, one) for one in files])
    wrong: list[Misjudged] = []
    for one in files:
        line = lines[one.item_id]
        if not line.complete:
            continue
        verdict = verdict_of(each, one, line, one.item_id in forgotten)
        row, document = covered.get(one.item_id), known.get(one.item_id)
        words = _wrong_decision(verdict, row)
        if not words and verdict.admitted and (row is None or row["leaving"] is None):
            words = _wrong_document(drive, one, line, document, other)
        if words:
            key = Admission.document_id_of(drive, one)
            wrong.append(Misjudged(one.item_id, key, words))
    return wrong


def _wrong_decision(verdict: Verdict, row: RowMapping | None) -> str:
    if verdict.gone:
        if row is None or row["admitted"]:
            return ""  # told by what is left
        return f"it lies outside of the connection, which skips it ({row['reason']})"
    if verdict.admitted:
        return "" if row is not None and row["admitted"] else "the connection does not admit it"
    if row is None:
        return f"the connection does not say that it skips it ({verdict.reason})"
    if not row["admitted"] and row["reason"] != verdict.reason:
        return f"it is skipped for {row['reason']}, and {verdict.reason} is the reason"
    return ""


def _wrong_document(
    drive: Drive,
    one: TreeItem,
    line: Lineage,
    document: RowMapping | None,
    other: Mapping[str, str],
) -> str:
    if document is None:
        return "there is no document for it"
    import_id = Admission.import_id_of(drive, one)
    wanted = document["wanted_import_id"]
    if wanted is None:
        return "nothing of it is wanted, and the connection admits it"
    if wanted != other.get(import_id, import_id):
        return f"import {wanted} is wanted, which is not that of its present version"
    folders = [folder.item_id for folder in line.folders]
    if document["name"] != one.name or json.loads(document["folders"]) != folders:
        return "its document has another name or lies in other folders"
    return ""


async def _coverage(
    connection: AsyncConnection, connection_id: str, item_ids: Sequence[str]
) -> dict[str, RowMapping]:
    found: dict[str, RowMapping] = {}
    for batch in batches(item_ids):
        rows = await connection.execute(
            select(coverage).where(
                coverage.c.connection_id == connection_id, coverage.c.item_id.in_(batch)
            )
        )
        found.update({row["item_id"]: row for row in rows.mappings()})
    return found


async def _documents(
    connection: AsyncConnection, drive: Drive, item_ids: Sequence[str]
) -> dict[str, RowMapping]:
    found: dict[str, RowMapping] = {}
    for batch in batches(item_ids):
        rows = await connection.execute(
            select(
                documents.c.item_id,
                documents.c.wanted_import_id,
                documents.c.name,
                documents.c.folders,
            ).where(documents.c.drive_id == drive.drive_id, documents.c.item_id.in_(batch))
        )
        found.update({row["item_id"]: row for row in rows.mappings()})
    return found


async def left_behind(catalog: Catalog, each: Connection) -> AsyncIterator[Left]:
    """Yield what a connection has admitted and the tree lacks, or has outside of its folder."""
    after = ""
    while True:
        async with catalog.read() as connection:
            drive = await drive_in(connection, each.drive_id)
            rows = await connection.execute(_covered_after(each, after))
            found = rows.mappings().all()
            rows_of = await known_items(
                connection, drive.drive_id, [row["item_id"] for row in found]
            )
            lines = await lineages(connection, drive.drive_id, rows_of.values())
            there = _there(each, rows_of.values(), lines)
        for row in found:
            if row["item_id"] not in there:
                asked = row["leaving"] is not None or each.attention is not None
                one = rows_of.get(row["item_id"])
                path = relative_path(one, lines[one.item_id], each.root_item_id) if one else ""
                yield Left(row["item_id"], asked=asked, known=one is not None, path=path)
        if len(found) < _CHUNK:
            return
        after = found[-1]["item_id"]


def _covered_after(each: Connection, after: str) -> Any:
    return (
        select(coverage.c.item_id, coverage.c.leaving)
        .where(
            coverage.c.connection_id == each.connection_id,
            coverage.c.item_id > after,
            or_(coverage.c.admitted, coverage.c.leaving.is_not(None)),
        )
        .order_by(coverage.c.item_id)
        .limit(_CHUNK)
    )


def _there(each: Connection, found: Collection[TreeItem], lines: Mapping[str, Lineage]) -> set[str]:
    """Return those of the items that lie below the connected folder, or are still undecided."""
    there = {one.item_id for one in found if one.dirty}
    for one in found:
        line = lines[one.item_id]
        if not one.deleted and line.alive and line.below(each.root_item_id) is not None:
            there.add(one.item_id)
    return there


async def covered_among(catalog: Catalog, connection_id: str, item_ids: Sequence[str]) -> set[str]:
    """Return those of the items that a connection has admitted or skipped."""
    async with catalog.read() as connection:
        return set(await _coverage(connection, connection_id, item_ids))

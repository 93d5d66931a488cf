"""Decisions about items: which connection admits a file, and what its document wants then.

Admissions take effect at once. What would remove something is only noted here (``leaving``);
:mod:`drivefeed.catalog.leaving` applies it when a whole round was decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, delete, select

from drivefeed.catalog.admission import Admission, admit
from drivefeed.catalog.dialect import among, as_many
from drivefeed.catalog.many_rows import replace_all
from drivefeed.catalog.reminders import LANE_FRESH
from drivefeed.catalog.roots import rooted_connections
from drivefeed.catalog.tables import coverage, documents
from drivefeed.catalog.tree import lineages
from drivefeed.domain.reasons import Reason
from drivefeed.domain.remote import ItemKind
from drivefeed.domain.scope import Place, skip_reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.sources import Drive
    from drivefeed.catalog.tree_lines import Lineage
    from drivefeed.domain.delta import TreeItem
    from drivefeed.domain.model import Connection

FOLDERS = frozenset({ItemKind.ROOT, ItemKind.FOLDER})
"""Containers about which no connection says anything; a package is skipped with a reason."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one connection says of one item."""

    connection: Connection
    item: TreeItem
    admitted: bool
    reason: Reason | None
    gone: bool


async def decide(
    connection: AsyncConnection,
    drive: Drive,
    connections: Sequence[Connection],
    items: Iterable[TreeItem],
    *,
    now: int,
    lane: int,
    generation: int | None = None,
    told: Mapping[str, TreeItem] | None = None,
) -> set[str]:
    """Decide about files and note what leaves; return the ids about which was decided.

    Args:
        told: rows of the tree that are not saved yet, and will be in this transaction.
        generation: given while a full enumeration runs: then only files are decided whose
            folders were all seen in it, and only admissions count. What a connection has whose
            folder is not there stays open: the folder may still come.
    """
    files = [one for one in items if one.kind is ItemKind.FILE or one.kind not in FOLDERS]
    if not files:
        return set()
    lines = await lineages(connection, drive.drive_id, files, generation=generation, told=told)
    rooted = await rooted_connections(connection, drive, connections, told=told)
    forgotten = await forgotten_items(connection, drive, files)
    held: set[str] = set()
    if generation is not None:
        absent = [each for each in connections if each not in rooted]
        held = await _held_by(connection, absent, files)
    decided: set[str] = set()
    verdicts: list[Verdict] = []
    may_ask = any(each.policy.own_permissions == "exclude" for each in rooted)
    for one in files:
        line = lines[one.item_id]
        if not one.deleted and not line.complete:
            # Its folder was never listed; it is decided when the folder arrives.
            if generation is None:
                decided.add(one.item_id)
            continue
        if generation is not None and not (
            one.is_whole and not one.deleted and line.seen and line.alive
        ):
            continue
        of_it = [verdict_of(each, one, line, one.item_id in forgotten) for each in rooted]
        if may_ask and generation is not None and any(map(awaits_permissions, of_it)):
            # The end of the listing decides, when it was asked for: what is admitted before that
            # and leaves then would count as removed.
            continue
        if one.item_id not in held:
            decided.add(one.item_id)
        verdicts += of_it
    await _write(connection, drive, verdicts, lines, now=now, lane=lane)
    return decided


async def forgotten_items(
    connection: AsyncConnection, drive: Drive, files: Iterable[TreeItem]
) -> set[str]:
    """Return the ids of those files that a person had forgotten."""
    name = connection.dialect.name
    ids = as_many(name, (one.item_id for one in files))
    rows = await connection.execute(_forgotten(name), {"of": drive.drive_id, "ids": ids})
    return {str(key) for key in rows.scalars()}


@cache
def _forgotten(dialect: str) -> Select[Any]:
    return select(documents.c.item_id).where(
        documents.c.drive_id == bindparam("of"),
        among(dialect, documents.c.item_id, "ids"),
        documents.c.forgotten,
    )


def verdict_of(each: Connection, one: TreeItem, line: Lineage, is_forgotten: bool) -> Verdict:  # noqa: FBT001 - a fact about the item
    """Return what a connection says of an item that is no folder."""
    around = line.surroundings(each.root_item_id)
    if one.deleted or not line.alive:
        return Verdict(each, one, admitted=False, reason=Reason.REMOVED_AT_SOURCE, gone=True)
    if around is None:
        return Verdict(each, one, admitted=False, reason=Reason.OUT_OF_SCOPE, gone=True)
    if is_forgotten:
        reason: Reason | None = Reason.FORGOTTEN
    else:
        reason = around.reason or skip_reason(one, Place(around.names, one.name), each.policy)
    return Verdict(each, one, admitted=reason is None, reason=reason, gone=False)


def awaits_permissions(verdict: Verdict) -> bool:
    """Tell whether a file's permissions, for which nobody asked yet, decide about it."""
    excludes = verdict.connection.policy.own_permissions == "exclude"
    return excludes and verdict.admitted and verdict.item.own_permissions is None


async def _write(
    connection: AsyncConnection,
    drive: Drive,
    verdicts: Sequence[Verdict],
    lines: Mapping[str, Lineage],
    *,
    now: int,
    lane: int,
) -> None:
    known = await _coverage(connection, verdicts)
    rows: list[dict[str, Any]] = []
    gone: list[tuple[str, str]] = []
    admissions: dict[str, Admission] = {}
    urgent: set[str] = set()
    for verdict in verdicts:
        key = (verdict.connection.connection_id, verdict.item.item_id)
        was_admitted = known.get(key)
        if verdict.admitted:
            line = lines[verdict.item.item_id]
            admissions[verdict.item.item_id] = Admission.of(drive, verdict.item, line)
            if verdict.connection.policy.priority == "high":
                urgent.add(verdict.item.item_id)
        row = _coverage_row(drive, verdict, was_admitted=was_admitted)
        if row is not None:
            rows.append(row)
        elif verdict.gone and was_admitted is False:
            gone.append(key)
    for each_lane, chosen in (
        (LANE_FRESH, [one for key, one in admissions.items() if key in urgent]),
        (lane, [one for key, one in admissions.items() if key not in urgent]),
    ):
        await admit(connection, drive, chosen, now=now, lane=each_lane)
    await replace_all(connection, coverage, rows)
    for connection_id, item_id in gone:
        await connection.execute(
            delete(coverage).where(
                coverage.c.connection_id == connection_id, coverage.c.item_id == item_id
            )
        )


def _coverage_row(
    drive: Drive, verdict: Verdict, *, was_admitted: bool | None
) -> dict[str, Any] | None:
    row: dict[str, Any] = {
        "connection_id": verdict.connection.connection_id,
        "item_id": verdict.item.item_id,
        "document_id": None,
        "admitted": verdict.admitted,
        "reason": verdict.reason,
        "leaving": None,
    }
    if verdict.admitted or was_admitted:
        row["document_id"] = Admission.document_id_of(drive, verdict.item)
    if was_admitted and not verdict.admitted:
        keeps = verdict.connection.policy.on_delete == "keep" and verdict.gone
        if keeps:
            return {**row, "admitted": True}
        leaving = verdict.reason if verdict.gone else Reason.OUT_OF_SCOPE
        return {**row, "admitted": True, "leaving": leaving}
    if verdict.gone:
        return None
    return row


async def _coverage(
    connection: AsyncConnection, verdicts: Sequence[Verdict]
) -> dict[tuple[str, str], bool]:
    found: dict[tuple[str, str], bool] = {}
    name = connection.dialect.name
    ids = as_many(name, {verdict.item.item_id for verdict in verdicts})
    for key in sorted({verdict.connection.connection_id for verdict in verdicts}):
        rows = await connection.execute(_covered(name), {"of": key, "ids": ids})
        found |= {(key, row.item_id): row.admitted for row in rows}
    return found


async def _held_by(
    connection: AsyncConnection, connections: Sequence[Connection], files: Iterable[TreeItem]
) -> set[str]:
    """Return the ids of those files of which one of the connections says something."""
    ids = [each.connection_id for each in connections]
    if not ids:
        return set()
    name = connection.dialect.name
    mine = select(coverage.c.item_id).where(
        coverage.c.connection_id.in_(ids), among(name, coverage.c.item_id, "ids")
    )
    rows = await connection.execute(mine, {"ids": as_many(name, [one.item_id for one in files])})
    return {str(key) for key in rows.scalars()}


@cache
def _covered(dialect: str) -> Select[Any]:
    return select(coverage.c.item_id, coverage.c.admitted).where(
        coverage.c.connection_id == bindparam("of"), among(dialect, coverage.c.item_id, "ids")
    )

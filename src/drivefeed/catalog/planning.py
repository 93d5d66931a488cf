"""Counts what a connection would import, from the tree that the catalog has. Writes nothing.

The verdicts come from the code that admits (:func:`drivefeed.catalog.deciding.verdict_of`), so
that a plan cannot say one thing and the scan do another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from drivefeed.catalog.admission import Admission
from drivefeed.catalog.deciding import (
    FOLDERS,
    forgotten_items,
    verdict_of,
)
from drivefeed.catalog.dialect import batches
from drivefeed.catalog.places import folder_path
from drivefeed.catalog.roots import rooted_connections
from drivefeed.catalog.sources import connection_of, drive_in
from drivefeed.catalog.tables import connections, coverage, documents, imports, items
from drivefeed.catalog.tree import items_after, known_items, lineages
from drivefeed.domain.delta import braked
from drivefeed.domain.lifecycle import State
from drivefeed.domain.model import Connection, Policy
from drivefeed.domain.plan import Change, Tally
from drivefeed.domain.policies import differences
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.deciding import Verdict
    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.delta import TreeItem

_CHUNK = 1000
_NOBODY = ""
_HAS_COME = frozenset({State.STORED, State.SUBMITTED, State.SETTLED, State.REJECTED})
"""States of an import that is not downloaded again; one that was refused stays refused."""


@dataclass(frozen=True, slots=True)
class Counted:
    """What a look at the tree found.

    Attributes:
        root: the folder in the tree; None where it is not there.
        folder: its path below the drive's root.
        is_bare: whether nothing at all lies in it.
        known: the connection of that folder, if there is one.
        change: what it changes, if there is one.
    """

    root: TreeItem | None
    folder: str
    is_bare: bool
    tally: Tally
    known: Connection | None
    change: Change | None


@dataclass(slots=True)
class _Standing:
    """What the policy would say, beside what the connection's coverage says today."""

    tally: Tally = field(default_factory=Tally)
    added: int = 0
    returning: int = 0
    removed: list[str] = field(default_factory=list)
    documents: int = 0


async def count(catalog: Catalog, drive_id: str, root_item_id: str, policy: Policy) -> Counted:
    """Count what connecting a folder with a policy would do, or changing to that policy.

    One view of the database is read from beginning to end.
    """
    async with catalog.read() as connection:
        drive = await drive_in(connection, drive_id)
        known = await _connection_at(connection, drive_id, root_item_id)
        trial = Connection(
            connection_id=known.connection_id if known else _NOBODY,
            org_id=drive.org_id,
            drive_id=drive_id,
            root_item_id=root_item_id,
            name="",
            policy=policy,
        )
        standing = _Standing()
        if known is not None:
            standing.documents = await _documents_of(connection, known)
        root, folder = await _folder(connection, drive, root_item_id)
        is_bare = await _is_bare(connection, drive_id, root_item_id)
        if root is not None and await rooted_connections(connection, drive, [trial]):
            await _walk(connection, drive, trial, standing)
        change = None
        if known is not None:
            change = await _change(connection, known, policy, standing)
    return Counted(root, folder, is_bare, standing.tally, known, change)


async def _connection_at(
    connection: AsyncConnection, drive_id: str, root_item_id: str
) -> Connection | None:
    rows = await connection.execute(
        select(connections).where(
            connections.c.drive_id == drive_id, connections.c.root_item_id == root_item_id
        )
    )
    row = rows.mappings().one_or_none()
    return None if row is None else connection_of(row)


async def _folder(
    connection: AsyncConnection, drive: Drive, root_item_id: str
) -> tuple[TreeItem | None, str]:
    found = await known_items(connection, drive.drive_id, [root_item_id])
    root = found.get(root_item_id)
    if root is None or root.deleted:
        return None, ""
    return root, await folder_path(connection, drive.drive_id, root_item_id)


async def _is_bare(connection: AsyncConnection, drive_id: str, root_item_id: str) -> bool:
    one = await connection.scalar(
        select(items.c.item_id)
        .where(
            items.c.drive_id == drive_id,
            items.c.parent_id == root_item_id,
            items.c.deleted.is_(False),
        )
        .limit(1)
    )
    return one is None


async def _walk(
    connection: AsyncConnection, drive: Drive, trial: Connection, standing: _Standing
) -> None:
    cursor: str | None = None
    while True:
        found = await items_after(connection, drive.drive_id, cursor, limit=_CHUNK)
        await _count_chunk(connection, drive, trial, found, standing)
        if len(found) < _CHUNK:
            return
        cursor = found[-1].item_id


async def _count_chunk(
    connection: AsyncConnection,
    drive: Drive,
    trial: Connection,
    found: Sequence[TreeItem],
    standing: _Standing,
) -> None:
    files = [one for one in found if one.kind not in FOLDERS]
    lines = await lineages(connection, drive.drive_id, files)
    forgotten = await forgotten_items(connection, drive, files)
    verdicts = [
        (one, verdict_of(trial, one, lines[one.item_id], one.item_id in forgotten))
        for one in files
        if lines[one.item_id].complete
    ]
    admitted_now = await _admitted(connection, trial.connection_id, [one.item_id for one in files])
    present = await _present(connection, drive, [one for one, v in verdicts if v.admitted])
    for one, verdict in verdicts:
        if _leaves(standing, one, verdict, admitted_now):
            standing.removed.append(Admission.document_id_of(drive, one))
        if verdict.admitted and one.item_id not in admitted_now:
            standing.returning += present.get(one.item_id) == State.SETTLED
        if verdict.gone:
            continue
        if verdict.reason is not None:
            standing.tally.skip(verdict.reason, one.size)
            continue
        below = lines[one.item_id].below(trial.root_item_id) or ()
        path = "/".join((*(folder.name for folder in below), one.name))
        shared = one.shared if one.own_permissions is None else one.own_permissions
        standing.tally.take(path, one.size, shared=shared, present=one.item_id in present)


def _leaves(standing: _Standing, one: TreeItem, verdict: Verdict, admitted_now: set[str]) -> bool:
    """Note how a verdict differs from what stands, and tell whether the scan would remove it."""
    was_admitted = one.item_id in admitted_now
    if verdict.admitted:
        standing.added += not was_admitted
        return False
    is_kept = verdict.gone and verdict.connection.policy.on_delete == "keep"
    return was_admitted and not is_kept


async def _admitted(
    connection: AsyncConnection, connection_id: str, item_ids: Sequence[str]
) -> set[str]:
    found: set[str] = set()
    if connection_id == _NOBODY:
        return found
    for batch in batches(item_ids):
        rows = await connection.execute(
            select(coverage.c.item_id).where(
                coverage.c.connection_id == connection_id,
                coverage.c.item_id.in_(batch),
                coverage.c.admitted,
            )
        )
        found.update(str(key) for key in rows.scalars())
    return found


async def _present(
    connection: AsyncConnection, drive: Drive, files: Sequence[TreeItem]
) -> dict[str, str]:
    """Return the states of those files whose present version needs no download any more."""
    versions = {Admission.import_id_of(drive, one): one.item_id for one in files}
    found: dict[str, str] = {}
    for batch in batches(versions):
        rows = await connection.execute(
            select(imports.c.id, imports.c.state, imports.c.reason).where(imports.c.id.in_(batch))
        )
        for row in rows:
            has_come = row.state in _HAS_COME and row.reason != Reason.GONE_AT_SOURCE
            if has_come or row.reason == Reason.SAME_BYTES:
                found[versions[row.id]] = row.state
    return found


async def _documents_of(connection: AsyncConnection, known: Connection) -> int:
    count_ = await connection.scalar(
        select(func.count())
        .select_from(coverage)
        .where(coverage.c.connection_id == known.connection_id, coverage.c.admitted)
    )
    return count_ or 0


async def _change(
    connection: AsyncConnection,
    known: Connection,
    policy: Policy,
    standing: _Standing,
) -> Change:
    hidden, kept = await _fate(connection, known, standing.removed)
    removed = len(standing.removed)
    return Change(
        options=differences(known.policy, policy),
        added=standing.added,
        returning=standing.returning,
        removed=removed,
        hidden=hidden,
        kept=kept,
        braked=removed > 0
        and braked(
            removals=removed,
            # What comes in is counted with what was there when the brake looks.
            documents=standing.documents + standing.added,
            count=policy.brake_count,
            percent=policy.brake_percent,
            floor=policy.brake_floor,
        ),
    )


async def _fate(
    connection: AsyncConnection, known: Connection, removed: Sequence[str]
) -> tuple[int, int]:
    """Return how many files that leave are shown and would be hidden, and how many stay."""
    kept: set[str] = set()
    shown: set[str] = set()
    for batch in batches(removed):
        others = await connection.execute(
            select(coverage.c.document_id).where(
                coverage.c.document_id.in_(batch),
                coverage.c.connection_id != known.connection_id,
                coverage.c.admitted,
            )
        )
        kept.update(str(key) for key in others.scalars())
        live = await connection.execute(
            select(documents.c.id).where(
                documents.c.id.in_(batch), documents.c.live_import_id.is_not(None)
            )
        )
        shown.update(str(key) for key in live.scalars())
    return len(shown - kept), len(kept)

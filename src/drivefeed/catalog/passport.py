"""The passport of a file: the whole story of each of its versions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, select

from drivefeed.catalog.listing import paths_of, relative_path
from drivefeed.catalog.progress import WHY_HELD
from drivefeed.catalog.sources import connection_of
from drivefeed.catalog.tables import (
    connections,
    coverage,
    documents,
    import_events,
    imports,
    index_jobs,
    items,
    reminders,
)
from drivefeed.catalog.tree import item_of, lineages
from drivefeed.catalog.usage_tables import ledger
from drivefeed.domain.errors import NotFound
from drivefeed.domain.identity import object_key
from drivefeed.domain.lifecycle import State
from drivefeed.ports import IndexJobState

if TYPE_CHECKING:
    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.delta import TreeItem

_MOST_MATCHES = 20
_MOST_SUGGESTIONS = 5


@dataclass(frozen=True, slots=True)
class Passport:
    """All that is known of one file.

    Attributes:
        coverage: what each connection decided about it.
        versions: its imports, oldest first, each with its events, charge and what is due.
    """

    path: str
    item: TreeItem
    coverage: list[dict[str, Any]]
    document: dict[str, Any] | None
    versions: list[dict[str, Any]]


async def passports(catalog: Catalog, path: str) -> list[Passport]:
    """Return the passports of files whose path ends with ``path``, or whose id it is.

    Letter case does not matter, as at the source. Deleted files are told of as well.
    """
    name = path.rstrip("/").rpartition("/")[2]
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(items).where(
                (func.lower(items.c.name) == name.lower())
                | (items.c.item_id == path)
                | (items.c.name == name)
            )
        )
        found = [(row["drive_id"], item_of(row)) for row in rows.mappings()]
        told = [
            await _passport(connection, drive_id, item)
            for drive_id, item in found[:_MOST_MATCHES]
            if not item.is_container
        ]
    wanted = f"/{path.strip('/')}".casefold()
    return [
        one
        for one in told
        if f"/{one.path}".casefold().endswith(wanted) or one.item.item_id == path
    ]


async def passport_in(catalog: Catalog, org_id: str, connection_id: str, item_id: str) -> Passport:
    """Return the passport of a file of a connection.

    Raises:
        NotFound: the org has no such connection, or no such file was ever listed in it.
    """
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(items)
            .join(connections, connections.c.drive_id == items.c.drive_id)
            .join(
                coverage,
                (coverage.c.connection_id == connections.c.id)
                & (coverage.c.item_id == items.c.item_id),
            )
            .where(
                connections.c.id == connection_id,
                connections.c.org_id == org_id,
                items.c.item_id == item_id,
            )
        )
        row = rows.mappings().one_or_none()
        if row is None:
            raise NotFound("There is no such file in this connection.")
        return await _passport(connection, row["drive_id"], item_of(row))


async def near_misses(catalog: Catalog, path: str) -> list[str]:
    """Return paths of a few files that ``path`` may have meant: in such a folder, or named alike.

    For the person who named a folder or a part of a name.
    """
    name = path.rstrip("/").rpartition("/")[2]
    like = func.lower(items.c.name).contains(name.lower(), autoescape=True)
    around = items.alias()
    in_folder = (
        select(around.c.item_id)
        .where(
            around.c.drive_id == items.c.drive_id,
            around.c.item_id == items.c.parent_id,
            func.lower(around.c.name) == name.lower(),
        )
        .exists()
    )
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(items, coverage.c.connection_id)
            .join(coverage, coverage.c.item_id == items.c.item_id)
            .where(items.c.deleted.is_(False), like | in_folder)
            .order_by(items.c.name)
            .limit(_MOST_SUGGESTIONS)
        )
        found = [(row["connection_id"], row["item_id"]) for row in rows.mappings()]
    paths = [await paths_of(catalog, connection, [item]) for connection, item in found]
    return sorted({path for each in paths for path in each.values()})


async def _passport(connection: AsyncConnection, drive_id: str, item: TreeItem) -> Passport:
    line = (await lineages(connection, drive_id, [item]))[item.item_id]
    rows = await connection.execute(select(connections).where(connections.c.drive_id == drive_id))
    known = {row["id"]: connection_of(row) for row in rows.mappings()}
    rows = await connection.execute(
        select(coverage).where(
            coverage.c.connection_id.in_(known), coverage.c.item_id == item.item_id
        )
    )
    decisions = [
        {
            "connection": known[row["connection_id"]].name,
            "admitted": row["admitted"],
            "reason": row["reason"],
            "leaving": row["leaving"],
        }
        for row in rows.mappings()
    ]
    rooted = [each for each in known.values() if line.below(each.root_item_id) is not None]
    root_id = rooted[0].root_item_id if rooted else ""
    row = (
        (
            await connection.execute(
                select(documents).where(
                    documents.c.drive_id == drive_id, documents.c.item_id == item.item_id
                )
            )
        )
        .mappings()
        .one_or_none()
    )
    document = dict(row) if row is not None else None
    versions = await _versions(connection, document["id"]) if document else []
    return Passport(
        path=relative_path(item, line, root_id),
        item=item,
        coverage=decisions,
        document=document,
        versions=versions,
    )


async def _versions(connection: AsyncConnection, document_id: str) -> list[dict[str, Any]]:
    rows = await connection.execute(
        select(imports).where(imports.c.document_id == document_id).order_by(imports.c.created_at)
    )
    return [await _version(connection, row) for row in rows.mappings().all()]


async def _version(connection: AsyncConnection, row: RowMapping) -> dict[str, Any]:
    version = dict(row)
    version["object_key"] = object_key(row["org_id"], row["document_id"], row["id"], row["round"])
    events = await connection.execute(
        select(import_events)
        .where(import_events.c.import_id == row["id"])
        .order_by(import_events.c.id)
    )
    version["events"] = [dict(event) for event in events.mappings()]
    charge = await connection.execute(
        select(ledger.c.pages, ledger.c.at).where(ledger.c.import_id == row["id"])
    )
    paid = charge.mappings().one_or_none()
    version["charged"] = dict(paid) if paid is not None else None
    due = await connection.execute(
        select(reminders.c.stage, reminders.c.due_at, reminders.c.number).where(
            reminders.c.subject_id == row["id"], reminders.c.due_at.is_not(None)
        )
    )
    waiting = due.mappings().one_or_none()
    version["due"] = dict(waiting) if waiting is not None else None
    if row["state"] == State.DISCOVERED and row["hold"] is None:
        # Said once for all downloads.
        version["hold"] = await connection.scalar(WHY_HELD)
    version["indexed_percent"] = await _indexed_percent(connection, row)
    return version


async def _indexed_percent(connection: AsyncConnection, row: RowMapping) -> int | None:
    """Return how far our own backend is with a version; None where nobody here works on it."""
    if row["state"] != State.SUBMITTED:
        return None
    percent: int | None = await connection.scalar(
        select(index_jobs.c.progress).where(
            index_jobs.c.key == f"{row['id']}:{row['round']}",
            index_jobs.c.state == IndexJobState.QUEUED,
        )
    )
    return percent

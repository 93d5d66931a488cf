"""The shadow tree of a drive: items by id, their ancestors, their paths."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import and_, bindparam, func, select, update

from drivefeed.catalog.dialect import among, as_many, batches
from drivefeed.catalog.many_rows import replace_all
from drivefeed.catalog.tables import items
from drivefeed.catalog.tree_lines import Climbed, Lineage
from drivefeed.domain.delta import TreeItem
from drivefeed.domain.remote import ItemKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from sqlalchemy import RowMapping, Select
    from sqlalchemy.ext.asyncio import AsyncConnection


def item_of(row: RowMapping) -> TreeItem:
    """Read a row of ``items``."""
    return TreeItem(
        item_id=row["item_id"],
        parent_id=row["parent_id"],
        name=row["name"],
        kind=ItemKind(row["kind"]),
        size=row["size"],
        media_type=row["media_type"],
        etag=row["etag"],
        quick_xor=row["quick_xor"],
        created_at=row["created_at"],
        modified_at=row["modified_at"],
        web_url=row["web_url"],
        malware=row["malware"],
        shared=row["shared"],
        own_permissions=row["own_permissions"],
        deleted=row["deleted"],
        generation=row["generation"],
        version_key=row["version_key"],
        origin_id=row["origin_id"],
        dirty=row["dirty"],
    )


def _row_of(drive_id: str, one: TreeItem, *, dirty: bool) -> dict[str, Any]:
    return {
        "drive_id": drive_id,
        "item_id": one.item_id,
        "parent_id": one.parent_id,
        "name": one.name,
        "kind": str(one.kind),
        "size": one.size,
        "media_type": one.media_type,
        "etag": one.etag,
        "quick_xor": one.quick_xor,
        "created_at": one.created_at,
        "modified_at": one.modified_at,
        "web_url": one.web_url,
        "malware": one.malware,
        "shared": one.shared,
        "own_permissions": one.own_permissions,
        "deleted": one.deleted,
        "generation": one.generation,
        "version_key": one.version_key,
        "origin_id": one.origin_id,
        "dirty": dirty,
    }


async def known_items(
    connection: AsyncConnection, drive_id: str, ids: Collection[str]
) -> dict[str, TreeItem]:
    """Load the rows of some items, tombstones included."""
    if not ids:
        return {}
    name = connection.dialect.name
    rows = await connection.execute(_known(name), {"of": drive_id, "ids": as_many(name, ids)})
    return {row["item_id"]: item_of(row) for row in rows.mappings()}


@cache
def _known(dialect: str) -> Select[Any]:
    return select(items).where(
        items.c.drive_id == bindparam("of"), among(dialect, items.c.item_id, "ids")
    )


async def items_told(
    connection: AsyncConnection, drive_id: str, ids: Collection[str], told: Mapping[str, TreeItem]
) -> dict[str, TreeItem]:
    """Take items from what will be saved, and load the others."""
    found = {key: told[key] for key in ids if key in told}
    others = [key for key in ids if key not in told]
    return found | await known_items(connection, drive_id, others) if others else found


async def save_items(
    connection: AsyncConnection,
    drive_id: str,
    rows: Iterable[TreeItem],
    *,
    decided: Collection[str] = (),
) -> None:
    """Insert or replace rows of the tree, no two of which have the same id.

    Args:
        decided: ids of those about which nothing is left to decide, whatever the rows say.
    """
    await replace_all(
        connection,
        items,
        [_row_of(drive_id, one, dirty=one.dirty and one.item_id not in decided) for one in rows],
    )


async def lineages(
    connection: AsyncConnection,
    drive_id: str,
    of: Iterable[TreeItem],
    *,
    generation: int | None = None,
    told: Mapping[str, TreeItem] | None = None,
) -> dict[str, Lineage]:
    """Climb from items to the root, in one query for all of them.

    Args:
        generation: which one the folders are to be seen in.
        told: rows that will be saved in this transaction, and count as if they were.
    """
    wanted = list(of)
    told = told or {}
    folders: dict[str, TreeItem] = {}
    missing: set[str] = set()
    level = {one.parent_id for one in wanted if one.parent_id}
    while level := level - folders.keys() - missing:
        found = {key: told[key] for key in level if key in told}
        if not found:
            loaded = await _upwards(connection, drive_id, level)
            found = {key: told.get(key, one) for key, one in loaded.items()}
            missing |= level - found.keys()
        folders |= found
        level |= {one.parent_id for one in found.values() if one.parent_id}
    climbed = Climbed(folders, generation)
    return {one.item_id: climbed.lineage(one) for one in wanted}


async def _upwards(
    connection: AsyncConnection, drive_id: str, ids: Collection[str]
) -> dict[str, TreeItem]:
    """Load some items and all that they lie in."""
    name = connection.dialect.name
    rows = await connection.execute(_up(name), {"of": drive_id, "ids": as_many(name, ids)})
    return {row["item_id"]: item_of(row) for row in rows.mappings()}


@cache
def _up(dialect: str) -> Select[Any]:
    first = select(items).where(
        items.c.drive_id == bindparam("of"), among(dialect, items.c.item_id, "ids")
    )
    found = first.cte("found", recursive=True)
    above = select(items).join(
        found, and_(items.c.drive_id == found.c.drive_id, items.c.item_id == found.c.parent_id)
    )
    # Not UNION ALL: what lies in a circle is found once.
    return select(found.union(above))


async def dirty_items(connection: AsyncConnection, drive_id: str, *, limit: int) -> list[TreeItem]:
    """Return items about which a decision is still to be made, containers first."""
    rows = await connection.execute(
        select(items).where(items.c.drive_id == drive_id, items.c.dirty).limit(limit)
    )
    return [item_of(row) for row in rows.mappings()]


async def mark_children_dirty(
    connection: AsyncConnection, drive_id: str, parents: Collection[str]
) -> None:
    """Pass a decision about folders on to what lies directly in them."""
    for batch in batches(parents):
        await connection.execute(
            update(items)
            .where(items.c.drive_id == drive_id, items.c.parent_id.in_(batch))
            .values(dirty=True)
        )


async def mark_dirty(connection: AsyncConnection, drive_id: str, ids: Select[tuple[str]]) -> None:
    """Have the items whose ids a query gives decided anew."""
    await connection.execute(
        update(items)
        .where(items.c.drive_id == drive_id, items.c.item_id.in_(ids))
        .values(dirty=True)
    )


async def rooted_folders(
    connection: AsyncConnection, drive_id: str, folders: Collection[TreeItem]
) -> list[str]:
    """Return those folders that hang on the drive's root.

    Others hang on a folder that was never listed, or in a circle. Nothing below them can be
    decided before what they hang on arrives, and in a circle passing on would never end.
    """
    lines = await lineages(connection, drive_id, folders)
    return [one.item_id for one in folders if lines[one.item_id].complete]


async def mark_decided(connection: AsyncConnection, drive_id: str, ids: Collection[str]) -> None:
    """Nothing is left to decide about these items."""
    for batch in batches(ids):
        await connection.execute(
            update(items)
            .where(items.c.drive_id == drive_id, items.c.item_id.in_(batch))
            .values(dirty=False)
        )


async def bury_unseen(connection: AsyncConnection, drive_id: str, *, generation: int) -> int:
    """After a completed full enumeration, turn what it did not see into tombstones."""
    result = await connection.execute(
        update(items)
        .where(
            items.c.drive_id == drive_id,
            items.c.generation < generation,
            items.c.deleted.is_(False),
        )
        .values(deleted=True, dirty=True)
    )
    return result.rowcount


async def items_after(
    connection: AsyncConnection, drive_id: str, cursor: str | None, *, limit: int
) -> list[TreeItem]:
    """Page through all items that are not deleted, by id."""
    where = [items.c.drive_id == drive_id, items.c.deleted.is_(False)]
    if cursor is not None:
        where.append(items.c.item_id > cursor)
    rows = await connection.execute(
        select(items).where(and_(*where)).order_by(items.c.item_id).limit(limit)
    )
    return [item_of(row) for row in rows.mappings()]


async def count_items(connection: AsyncConnection, drive_id: str) -> int:
    """Count the items of a drive that are not deleted."""
    row = await connection.execute(
        select(func.count())
        .select_from(items)
        .where(items.c.drive_id == drive_id, items.c.deleted.is_(False))
    )
    return int(row.scalar_one())

"""Items that came back under other ids: the same files, so the same documents.

Two cases were reported. The service gave all items of a drive new ids when it moved the drive to
another backend (onedrive-api-docs#1890). And a folder that is restored may come back under a new
id. What is found at the same path with the same content keeps its document, its imports and its
place in the index: nothing is downloaded or embedded again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from sqlalchemy import bindparam, delete, select, update

from drivefeed.catalog.dialect import batches
from drivefeed.catalog.sources import connections_in, drive_in
from drivefeed.catalog.tables import connections, coverage, documents, drives, items
from drivefeed.catalog.tree import item_of, known_items, save_items
from drivefeed.domain.remote import ItemKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive
    from drivefeed.domain.delta import TreeItem

_CHUNK = 200

Pairs = list[tuple["TreeItem", "TreeItem"]]
"""Items as they were, each with the one that took its place."""


async def follow_new_root(connection: AsyncConnection, drive: Drive) -> None:
    """At the end of a full enumeration: where the drive's root has another id, carry all over."""
    rows = await connection.execute(
        select(items).where(
            items.c.drive_id == drive.drive_id,
            items.c.kind == ItemKind.ROOT,
            items.c.deleted.is_(False),
        )
    )
    roots = [item_of(row) for row in rows.mappings()]
    new = [one for one in roots if one.generation == drive.generation]
    old = [one for one in roots if one.generation < drive.generation]
    if len(new) != 1:
        return
    if len(old) == 1:
        async for pairs in _below(connection, drive, (old[0], new[0])):
            await _carry_over(connection, drive, pairs)
    if drive.root_item_id != new[0].item_id:
        await connection.execute(
            update(drives).where(drives.c.id == drive.drive_id).values(root_item_id=new[0].item_id)
        )


async def welcome_restored_folders(catalog: Catalog, drive: Drive) -> None:
    """After a round: a connected folder that is gone may be there again under another id.

    It is taken for the same folder where it has its name and place, and at least one of its files
    with the same content. Everything else is for a person to decide.
    """
    async with catalog.read() as connection:
        if not await _gone_roots(connection, drive):
            return
    async with catalog.write("round.welcome", beside=True) as connection:
        current = await drive_in(connection, drive.drive_id, lock=True)
        if not current.settling:
            return
        for old in await _gone_roots(connection, current):
            new = await _namesake(connection, current, old)
            if new is None or not await _is_the_same(connection, current, (old, new)):
                continue
            async for pairs in _below(connection, current, (old, new)):
                await _carry_over(connection, current, pairs)


async def _gone_roots(connection: AsyncConnection, drive: Drive) -> list[TreeItem]:
    known = await connections_in(connection, drive.drive_id)
    roots = await known_items(connection, drive.drive_id, {each.root_item_id for each in known})
    return [one for one in roots.values() if one.deleted]


async def _namesake(connection: AsyncConnection, drive: Drive, old: TreeItem) -> TreeItem | None:
    """Return the living folder of the same name in the same place, unless it is connected."""
    rows = await connection.execute(
        select(items).where(
            items.c.drive_id == drive.drive_id,
            items.c.parent_id == old.parent_id,
            items.c.kind == ItemKind.FOLDER,
            items.c.deleted.is_(False),
        )
    )
    found = [one for one in map(item_of, rows.mappings()) if _name(one) == _name(old)]
    taken = {each.root_item_id for each in await connections_in(connection, drive.drive_id)}
    return found[0] if len(found) == 1 and found[0].item_id not in taken else None


async def _is_the_same(
    connection: AsyncConnection, drive: Drive, pair: tuple[TreeItem, TreeItem]
) -> bool:
    async for pairs in _below(connection, drive, pair):
        if any(old.kind is ItemKind.FILE for old, _ in pairs):
            return True
    return False


async def _below(
    connection: AsyncConnection, drive: Drive, top: tuple[TreeItem, TreeItem]
) -> AsyncIterator[Pairs]:
    """Yield what has its counterpart at the same path, folders before what lies in them."""
    waiting: list[Pairs] = [[top]]
    while waiting:
        pairs = waiting.pop()
        yield pairs
        folders = [pair for pair in pairs if pair[0].kind is not ItemKind.FILE]
        found = await _children(connection, drive, folders)
        waiting += [found[at : at + _CHUNK] for at in range(0, len(found), _CHUNK)]


async def _children(connection: AsyncConnection, drive: Drive, folders: Pairs) -> Pairs:
    old = await _in(connection, drive, {before.item_id for before, _ in folders})
    new = await _in(connection, drive, {after.item_id for _, after in folders})
    counterpart = {before.item_id: after.item_id for before, after in folders}
    places = {(one.parent_id, _name(one)): one for one in new if not one.deleted}
    taken = await _documented(connection, drive, [one.item_id for one in new])
    found: dict[str, tuple[TreeItem, TreeItem]] = {}
    # Of several that had the place one after the other, the one told last is its owner.
    for one in sorted(old, key=lambda each: (not each.deleted, each.generation)):
        after = places.get((counterpart.get(one.parent_id or ""), _name(one)))
        if after is not None and after.item_id not in taken and _is_counterpart(one, after):
            found[after.item_id] = (one, after)
    return list(found.values())


async def _in(
    connection: AsyncConnection, drive: Drive, folders: Collection[str]
) -> list[TreeItem]:
    found: list[TreeItem] = []
    for batch in batches(folders):
        rows = await connection.execute(
            select(items).where(items.c.drive_id == drive.drive_id, items.c.parent_id.in_(batch))
        )
        found += [item_of(row) for row in rows.mappings()]
    return found


async def _documented(
    connection: AsyncConnection, drive: Drive, item_ids: Collection[str]
) -> set[str]:
    """Return which items have a document of their own already."""
    found: set[str] = set()
    for batch in batches(item_ids):
        rows = await connection.execute(
            select(documents.c.item_id).where(
                documents.c.drive_id == drive.drive_id, documents.c.item_id.in_(batch)
            )
        )
        found.update(str(key) for key in rows.scalars())
    return found


def _name(one: TreeItem) -> str:
    return one.name.casefold()


def _is_counterpart(old: TreeItem, new: TreeItem) -> bool:
    if old.kind is not new.kind or old.item_id == new.item_id:
        return False
    if old.kind is not ItemKind.FILE:
        return True
    if old.quick_xor and new.quick_xor:
        return old.quick_xor == new.quick_xor
    told = (old.size, old.modified_at)
    return None not in told and told == (new.size, new.modified_at)


async def _carry_over(connection: AsyncConnection, drive: Drive, pairs: Pairs) -> None:
    """Give the new items the documents, decisions and connections of the old ones.

    What lay in an old folder and has no counterpart is a tombstone from now on.
    """
    old_ids = [old.item_id for old, _ in pairs]
    ids = [{"old": old.item_id, "new": new.item_id} for old, new in pairs]
    known = [each.connection_id for each in await connections_in(connection, drive.drive_id)]
    for batch in batches(old_ids):
        await connection.execute(
            update(items)
            .where(items.c.drive_id == drive.drive_id, items.c.parent_id.in_(batch))
            .values(deleted=True, dirty=True)
        )
        await connection.execute(
            delete(items).where(items.c.drive_id == drive.drive_id, items.c.item_id.in_(batch))
        )
    await save_items(
        connection,
        drive.drive_id,
        [
            replace(new, origin_id=old.key, version_key=old.version_key, dirty=True)
            for old, new in pairs
        ],
    )
    for batch in batches(pair["new"] for pair in ids):
        await connection.execute(
            delete(coverage).where(
                coverage.c.connection_id.in_(known), coverage.c.item_id.in_(batch)
            )
        )
    of_drive = (
        (documents, documents.c.item_id, documents.c.drive_id == drive.drive_id),
        *((coverage, coverage.c.item_id, coverage.c.connection_id == key) for key in known),
        (connections, connections.c.root_item_id, connections.c.drive_id == drive.drive_id),
    )
    for table, column, condition in of_drive:
        await connection.execute(
            update(table)
            .where(condition, column == bindparam("old"))
            .values({column.name: bindparam("new")}),
            ids,
        )

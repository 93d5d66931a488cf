"""Find or create the document and the import of an admitted file, and want that version."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert as plain_insert
from sqlalchemy import select, update

from drivefeed.catalog.dialect import among, as_many, batches
from drivefeed.catalog.documents import (
    import_payload,
    load,
    record_event,
    save_import,
    wanting,
)
from drivefeed.catalog.many_rows import insert_all
from drivefeed.catalog.settling import Change, settle_all
from drivefeed.catalog.tables import documents, import_events, imports
from drivefeed.catalog.tables import reminders as reminders_table
from drivefeed.domain.converge import apply
from drivefeed.domain.identity import document_id, import_id
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.model import Import
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.sources import Drive
    from drivefeed.catalog.tree_lines import Lineage
    from drivefeed.domain.delta import TreeItem

_SOURCE = "drive"


@dataclass(frozen=True, slots=True)
class Admission:
    """An admitted file: its document, the import of its version, and where it lies."""

    document_id: str
    import_id: str
    item: TreeItem
    folders: tuple[str, ...]

    @classmethod
    def of(cls, drive: Drive, item: TreeItem, line: Lineage) -> Admission:
        """Derive the ids from org, file and version."""
        return cls(
            document_id=cls.document_id_of(drive, item),
            import_id=cls.import_id_of(drive, item),
            item=item,
            folders=tuple(folder.item_id for folder in line.folders),
        )

    @staticmethod
    def document_id_of(drive: Drive, item: TreeItem) -> str:
        """Return the id of an item's document."""
        return document_id(drive.org_id, _SOURCE, drive.item_key(item))

    @staticmethod
    def import_id_of(drive: Drive, item: TreeItem) -> str:
        """Return the id of the import of an item's present version."""
        return import_id(drive.org_id, _SOURCE, drive.item_key(item), item.version_key)


async def admit(
    connection: AsyncConnection,
    drive: Drive,
    admissions: Sequence[Admission],
    *,
    now: int,
    lane: int,
) -> None:
    """Make the admitted versions wanted; what is wanted already stays untouched."""
    known = await load(connection, [one.document_id for one in admissions], lock=True)
    fresh = [one for one in admissions if one.document_id not in known]
    await _create(connection, drive, fresh, now=now, lane=lane)
    old = [one for one in admissions if one.document_id in known]
    aliases = await aliases_of(connection, [one.import_id for one in old])
    moved = await _place(connection, old)
    changes: list[Change] = []
    for one in old:
        before, siblings = known[one.document_id]
        wanted = aliases.get(one.import_id, one.import_id)
        is_new = one.import_id not in siblings
        if is_new:
            await connection.execute(plain_insert(imports).values(_import_row(drive, one, now)))
            await connection.execute(plain_insert(import_events).values(_seen_event(one, now)))
            siblings[one.import_id] = _import(drive, one)
        is_back = await _welcome_back(connection, siblings, wanted, now=now)
        document = wanting(before, wanted)
        if one.document_id in moved:
            document = replace(document, misplaced=True)
            await _outdated(connection, siblings)
            if wanted in siblings:
                await record_event(
                    connection, siblings[wanted], "moved", now=now, detail=moved[one.document_id]
                )
        if is_new or is_back or document != before:
            changes.append(Change(before, document, siblings))
    await settle_all(connection, changes, now=now, lane=lane)


def gone_at_source(
    connection: AsyncConnection, drive: Drive, ids: Collection[str]
) -> Select[tuple[str]]:
    """Return the question for those items of a drive whose file was gone when it was to be copied.

    Deleted and restored between two looks, a file is listed as it was before.
    """
    name = connection.dialect.name
    return (
        select(documents.c.item_id)
        .join(imports, imports.c.id == documents.c.wanted_import_id)
        .where(
            documents.c.drive_id == drive.drive_id,
            among(name, documents.c.item_id, "ids"),
            imports.c.reason == Reason.GONE_AT_SOURCE,
        )
        .params(ids=as_many(name, ids))
    )


async def _welcome_back(
    connection: AsyncConnection, siblings: dict[str, Import], wanted: str, *, now: int
) -> bool:
    """A file that was gone when it was to be copied, and is listed again, gets another round."""
    one = siblings.get(wanted)
    if one is None or one.reason is not Reason.GONE_AT_SOURCE:
        return False
    again = apply(one, Event.WANTED_AGAIN)
    if again is None:
        return False
    siblings[wanted] = again
    await save_import(connection, again)
    await record_event(connection, again, Event.WANTED_AGAIN, now=now)
    return True


async def aliases_of(connection: AsyncConnection, ids: Sequence[str]) -> dict[str, str]:
    """Versions that turned out to hold the bytes of another version stand for that one."""
    found: dict[str, str] = {}
    for batch in batches(ids):
        rows = await connection.execute(
            select(imports.c.id, imports.c.same_as).where(
                imports.c.id.in_(batch),
                imports.c.same_as.is_not(None),
                imports.c.reason == Reason.SAME_BYTES,
            )
        )
        found.update({row.id: row.same_as for row in rows})
    return found


async def _place(connection: AsyncConnection, admissions: Sequence[Admission]) -> dict[str, str]:
    """Record where files lie and what they are called now.

    Returns:
        For each document that moved, what happened to it, in words.
    """
    moved: dict[str, str] = {}
    places: dict[str, tuple[str, str]] = {}
    for batch in batches(one.document_id for one in admissions):
        rows = await connection.execute(
            select(documents.c.id, documents.c.name, documents.c.folders).where(
                documents.c.id.in_(batch)
            )
        )
        places.update({row.id: (row.name, row.folders) for row in rows})
    for one in admissions:
        folders = json.dumps(one.folders)
        if places[one.document_id] == (one.item.name, folders):
            continue
        name = places[one.document_id][0]
        is_renamed = name != one.item.name
        moved[one.document_id] = (
            f"renamed from '{name}' to '{one.item.name}'"
            if is_renamed
            else "it lies in another folder now"
        )
        await connection.execute(
            update(documents)
            .where(documents.c.id == one.document_id)
            .values(name=one.item.name, folders=folders)
        )
    return moved


async def _outdated(connection: AsyncConnection, siblings: dict[str, Import]) -> None:
    """Note on imports that may be with the backend that they were sent with an older place."""
    for one in list(siblings.values()):
        if one.state in {State.STORED, State.SUBMITTED} and not one.misplaced:
            siblings[one.import_id] = replace(one, misplaced=True)
            await save_import(connection, siblings[one.import_id])


async def _create(
    connection: AsyncConnection,
    drive: Drive,
    fresh: Sequence[Admission],
    *,
    now: int,
    lane: int,
) -> None:
    if not fresh:
        return
    await insert_all(
        connection,
        documents,
        [
            {
                "id": one.document_id,
                "org_id": drive.org_id,
                "source": _SOURCE,
                "drive_id": drive.drive_id,
                "item_id": one.item.item_id,
                "name": one.item.name,
                "wanted_import_id": one.import_id,
                "seq": 1,
                "folders": json.dumps(one.folders),
                "created_at": now,
            }
            for one in fresh
        ],
    )
    await insert_all(connection, imports, [_import_row(drive, one, now) for one in fresh])
    await insert_all(connection, import_events, [_seen_event(one, now) for one in fresh])
    await insert_all(
        connection,
        reminders_table,
        [
            {
                "subject_id": one.import_id,
                "org_id": drive.org_id,
                "stage": "transfer",
                "due_at": now,
                "lane": lane,
                "payload": json.dumps(import_payload(_import(drive, one))),
            }
            for one in fresh
        ],
    )


def _import(drive: Drive, one: Admission) -> Import:
    return Import(
        import_id=one.import_id,
        document_id=one.document_id,
        org_id=drive.org_id,
        version_key=one.item.version_key,
        quick_xor=one.item.quick_xor,
    )


def _import_row(drive: Drive, one: Admission, now: int) -> dict[str, Any]:
    return {
        "id": one.import_id,
        "org_id": drive.org_id,
        "document_id": one.document_id,
        "version_key": one.item.version_key,
        "state": State.DISCOVERED,
        "listed_size": one.item.size,
        "quick_xor": one.item.quick_xor,
        "modified_at": one.item.modified_at,
        "created_at": now,
    }


def _seen_event(one: Admission, now: int) -> dict[str, Any]:
    return {
        "import_id": one.import_id,
        "round": 1,
        "at": now,
        "event": "admitted",
        "state": State.DISCOVERED,
        "detail": f"{one.item.name}, {one.item.size} bytes as listed, {one.item.version_key}",
    }

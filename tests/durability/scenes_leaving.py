"""Scenes of repairs and of leaving: what a clerk does who mends, forgets and disconnects."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import select

from drivefeed.catalog.connecting import connect
from drivefeed.catalog.erasing import disconnect, withdraw_some
from drivefeed.catalog.forgetting import forget, remember
from drivefeed.catalog.mending import add_up, converge_again, show_again_one
from drivefeed.catalog.receipts import receipts
from drivefeed.catalog.reconciling import Reconciled, note_reconciled
from drivefeed.catalog.rereading import Answer, take_answers, tree_rows
from drivefeed.catalog.signing_out import sign_out_due
from drivefeed.catalog.sources import all_connections, all_drives
from drivefeed.catalog.tables import documents
from drivefeed.domain.model import Policy
from drivefeed.domain.remote import ItemKind, RemoteItem
from durability.scenes import catalog_here

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog

NOTE = "note 0.txt"


def mend() -> None:
    """Everything that a repair writes is written, though nothing is wrong."""
    asyncio.run(_mend())


async def _mend() -> None:
    async with catalog_here() as catalog:
        document = await _document(catalog)
        await converge_again(catalog, document["id"], detail="a drill")
        await show_again_one(catalog, document["id"])
        await add_up(catalog, "test")
        (drive,) = await all_drives(catalog)
        key = document["item_id"]
        row = (await tree_rows(catalog, drive.drive_id, [key]))[key]
        told = RemoteItem(
            key, row.parent_id, row.name, ItemKind.FILE, row.size, etag=row.etag,
            quick_xor=row.quick_xor, modified_at=row.modified_at,
        )  # fmt: skip
        await take_answers(catalog, drive.drive_id, [Answer(key, row, told)])
        await note_reconciled(catalog, drive.drive_id, Reconciled(due_at=2**50))


def forgotten() -> None:
    """A file is forgotten, and that is undone."""
    asyncio.run(_forgotten())


async def _forgotten() -> None:
    async with catalog_here() as catalog:
        document = await _document(catalog)
        await forget(catalog, document["id"], actor="clerk")
        await remember(catalog, document["id"], actor="clerk")


async def _document(catalog: Catalog) -> dict[str, Any]:
    async with catalog.read() as connection:
        rows = await connection.execute(select(documents).where(documents.c.name == NOTE))
        return dict(rows.mappings().one())


def disconnected() -> None:
    """The only connection is disconnected, and what it brought is to be erased."""
    asyncio.run(_disconnected())


async def _disconnected() -> None:
    async with catalog_here() as catalog:
        (one,) = await all_connections(catalog)
        receipt = await disconnect(catalog, one, erases=True, signed_out=False, actor="clerk")
        while await withdraw_some(catalog, receipt):
            pass


def connected() -> None:
    """The folder is connected again."""
    asyncio.run(_connected())


async def _connected() -> None:
    async with catalog_here() as catalog:
        (drive,) = await all_drives(catalog)
        (receipt,) = await receipts(catalog)
        await connect(
            catalog,
            drive_id=drive.drive_id,
            root_item_id=receipt.root_item_id or str(drive.root_item_id),
            name="The drive",
            policy=Policy(),
            actor="clerk",
        )
        # The account is read through again, and keeps the credential that was to go.
        await sign_out_due(catalog, replace(receipt, signs_out=True))

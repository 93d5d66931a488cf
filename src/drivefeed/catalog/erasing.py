"""Disconnecting with erasure: content goes at once, then the words about it, then the connection.

What stays is what must: ids, hashes and numbers that the ledger and the names of effects stand on,
so that nothing is ever charged twice and no late effect meets another's name. Every step can be
done again; how far it came is the receipt, a fact of the catalog that holds ids and numbers alone.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, delete, exists, func, or_, select, update

from drivefeed.catalog.audit_log import record
from drivefeed.catalog.documents import load, settle_into, wanting_nothing
from drivefeed.catalog.pages_rounds import FRESH_ROUND
from drivefeed.catalog.receipts import Receipt, keep_receipt, receipts, unfinished
from drivefeed.catalog.settling import admitted_somewhere
from drivefeed.catalog.signing_out import account_to_sign_out, is_told_through, sign_out_in
from drivefeed.catalog.subscription_tables import subscriptions
from drivefeed.catalog.subscriptions import FLOWS
from drivefeed.catalog.tables import (
    connections,
    coverage,
    documents,
    drives,
    import_events,
    imports,
    index_jobs,
    items,
    reminders,
)
from drivefeed.catalog.usage_tables import ledger
from drivefeed.domain.lifecycle import ENDED
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection

_CHUNK: Final = 200
_ITEMS: Final = 5_000


async def disconnect(
    catalog: Catalog, each: Connection, *, erases: bool, signed_out: bool, actor: str
) -> Receipt:
    """Stop a connection for good; with ``erases``, what it brought is to be erased.

    Kept documents stay searchable as they are, and follow the source no more.

    Args:
        signed_out: whether the credential of its account goes too; not before Microsoft was told
            to call no more, which needs it.

    Raises:
        NeedsAttention: others use that account, so nothing was changed.
    """
    now = catalog.clock.now()
    receipt = Receipt(
        connection_id=each.connection_id,
        org_id=each.org_id,
        drive_id=each.drive_id,
        root_item_id=each.root_item_id,
        policy="erase" if erases else "keep",
        at=now,
        signs_out=signed_out,
    )
    async with catalog.write("disconnect") as connection:
        if erases and (begun := await unfinished(connection, each)):
            # What it counted so far is counted nowhere else.
            receipt = replace(begun, signs_out=begun.signs_out or signed_out)
        if receipt.signs_out and not receipt.signed_out:
            account_id = await account_to_sign_out(connection, each)
            if not await is_told_through(connection, account_id):
                await sign_out_in(connection, account_id)
                receipt = replace(receipt, signed_out=True)
        await connection.execute(
            update(connections)
            .where(connections.c.id == each.connection_id)
            .values(paused=True, pruned=False, admitting=False, admit_cursor=None)
        )
        await record(
            connection,
            org_id=each.org_id,
            actor=actor,
            action="connection.disconnected",
            subject_id=each.connection_id,
            after={"policy": receipt.policy},
        )
        if not (erases or receipt.signs_out != receipt.signed_out):
            is_told = await _is_told_of(connection, each.drive_id)
            receipt = replace(receipt, ended_at=None if is_told else now)
        return await keep_receipt(connection, receipt)


async def withdraw_some(catalog: Catalog, receipt: Receipt) -> bool:
    """Have some of the documents erased that nobody else wants; True while there are more."""
    now = catalog.clock.now()
    async with catalog.write("erase.some") as connection:
        rows = await connection.execute(
            select(coverage.c.item_id, coverage.c.document_id)
            .where(coverage.c.connection_id == receipt.connection_id)
            .order_by(coverage.c.item_id)
            .limit(_CHUNK)
        )
        found = list(rows)
        await connection.execute(
            delete(coverage).where(
                coverage.c.connection_id == receipt.connection_id,
                coverage.c.item_id.in_([row.item_id for row in found]),
            )
        )
        ids = [row.document_id for row in found if row.document_id is not None]
        if not found:
            # What had left the connection before, and is hidden or was never covered again.
            where = [
                documents.c.drive_id == receipt.drive_id,
                documents.c.unwanted_reason.is_distinct_from(Reason.ERASED),
            ]
            if not await _is_last(connection, receipt):
                where += [
                    documents.c.id.in_(
                        select(ledger.c.document_id).where(
                            ledger.c.connection_id == receipt.connection_id
                        )
                    ),
                    ~exists().where(coverage.c.document_id == documents.c.id, coverage.c.admitted),
                ]
            rows = await connection.execute(select(documents.c.id).where(*where).limit(_CHUNK))
            ids = list(rows.scalars())
        await erase_documents(connection, ids, now=now)
        return bool(found or ids)


async def erase_documents(connection: AsyncConnection, ids: Sequence[str], *, now: int) -> None:
    """Want nothing of documents that no connection admits, and have their content erased now."""
    for document_id, (before, known) in (await load(connection, ids, lock=True)).items():
        if await admitted_somewhere(connection, [document_id]):
            continue
        document = wanting_nothing(before, reason=Reason.ERASED, erase_at=now)
        document = replace(document, unwanted_reason=Reason.ERASED, erase_at=now)
        await settle_into(connection, before, document, known, now=now, moved=list(known))


async def _is_last(connection: AsyncConnection, receipt: Receipt) -> bool:
    others = await connection.scalar(
        select(func.count())
        .select_from(connections)
        .where(
            connections.c.drive_id == receipt.drive_id,
            connections.c.id != receipt.connection_id,
        )
    )
    return not others


async def purge_some(catalog: Catalog, receipt: Receipt) -> tuple[Receipt, bool | None]:
    """Clear the words about some documents whose content is gone.

    Returns:
        The receipt as it is now, and whether there are more; None where content is still on its
        way out.
    """
    under_way = exists().where(
        imports.c.document_id == documents.c.id, imports.c.state.not_in(sorted(ENDED))
    )
    async with catalog.write("erase.purge") as connection:
        where = [
            documents.c.drive_id == receipt.drive_id,
            documents.c.unwanted_reason == Reason.ERASED,
            documents.c.wanted_import_id.is_(None),
            documents.c.name != "",
        ]
        if not await _is_last(connection, receipt):
            where.append(documents.c.forgotten.is_(False))
        rows = await connection.execute(
            select(documents.c.id).where(*where, ~under_way).limit(_CHUNK)
        )
        ids = list(rows.scalars())
        if not ids:
            waits = await connection.scalar(select(exists().where(and_(*where))))
            return receipt, None if waits else False
        count = await _clear_words(connection, ids)
        receipt = replace(
            receipt, documents=receipt.documents + len(ids), imports=receipt.imports + count
        )
        return await keep_receipt(connection, receipt), True


async def _clear_words(connection: AsyncConnection, ids: Sequence[str]) -> int:
    """Clear names and sentences of documents; return how many versions they had."""
    mine = select(imports.c.id).where(imports.c.document_id.in_(ids))
    versions = list((await connection.execute(mine)).scalars())
    await connection.execute(
        update(documents).where(documents.c.id.in_(ids)).values(name="", folders="[]")
    )
    await connection.execute(
        update(imports).where(imports.c.document_id.in_(ids)).values(detail=None)
    )
    await connection.execute(
        update(import_events).where(import_events.c.import_id.in_(mine)).values(detail="")
    )
    await connection.execute(delete(index_jobs).where(index_jobs.c.document_id.in_(ids)))
    return len(versions)


async def clear_tree(catalog: Catalog, receipt: Receipt) -> tuple[Receipt, bool]:
    """Remove some rows of a shadow tree that no other connection needs; whether there are more."""
    async with catalog.write("erase.tree") as connection:
        if not await _is_last(connection, receipt):
            return receipt, False
        gone = await forget_items(connection, receipt.drive_id)
        receipt = replace(receipt, items=receipt.items + gone)
        return await keep_receipt(connection, receipt), gone == _ITEMS


async def forget_items(connection: AsyncConnection, drive_id: str) -> int:
    """Forget a drive's position and some of its shadow tree; return how many rows went.

    Whoever has a page of it in hand finds that the position is another one.
    """
    await connection.execute(
        update(drives)
        .where(drives.c.id == drive_id)
        .values(
            {
                **FRESH_ROUND,
                "cursor": None,
                "enumerating": False,
                "settling": False,
                "given_up": 0,
                "last_round_at": None,
                "failing_since": None,
                "detail": None,
            }
        )
    )
    some = select(items.c.item_id).where(items.c.drive_id == drive_id).limit(_ITEMS)
    gone = await connection.execute(
        delete(items).where(items.c.drive_id == drive_id, items.c.item_id.in_(some))
    )
    return int(gone.rowcount)


async def is_told_of(catalog: Catalog, receipt: Receipt) -> bool:
    """Whether Microsoft may still tell us of changes in a drive of which nothing flows any more."""
    async with catalog.read() as connection:
        return await _is_told_of(connection, receipt.drive_id)


async def _is_told_of(connection: AsyncConnection, drive_id: str) -> bool:
    asked = (
        select(subscriptions.c.drive_id)
        .join(drives, drives.c.id == subscriptions.c.drive_id)
        .where(subscriptions.c.drive_id == drive_id, ~FLOWS)
    )
    return (await connection.execute(asked)).first() is not None


async def end_leaving(catalog: Catalog, receipt: Receipt) -> Receipt:
    """Complete the receipt; where everything was erased, the connection itself goes."""
    async with catalog.write("erase.end") as connection:
        if receipt.policy == "erase":
            mine = receipt.connection_id
            await connection.execute(delete(coverage).where(coverage.c.connection_id == mine))
            await connection.execute(delete(reminders).where(reminders.c.subject_id == mine))
            await connection.execute(delete(connections).where(connections.c.id == mine))
        return await keep_receipt(connection, replace(receipt, ended_at=catalog.clock.now()))


async def erased_left(catalog: Catalog) -> list[tuple[str, str]]:
    """Return documents that were erased and of which words are left: (id, what)."""
    open_drives = [one.drive_id for one in await receipts(catalog) if one.ended_at is None]
    has_job = exists().where(index_jobs.c.document_id == documents.c.id)
    has_words = exists().where(
        imports.c.document_id == documents.c.id, imports.c.detail.is_not(None)
    )
    is_purged = and_(
        documents.c.unwanted_reason == Reason.ERASED,
        documents.c.wanted_import_id.is_(None),
        documents.c.drive_id.not_in(open_drives),
        ~exists().where(items.c.drive_id == documents.c.drive_id),
    )
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(documents.c.id).where(is_purged, or_(documents.c.name != "", has_job, has_words))
        )
        return [(str(key), "it was erased, and words about it are left") for key in rows.scalars()]

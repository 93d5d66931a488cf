"""``advance``: the one way in which an import changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import update

from drivefeed.catalog import reminders
from drivefeed.catalog.dialect import insert_once
from drivefeed.catalog.documents import (
    load,
    load_around,
    record_event,
    save_import,
    settle_into,
    wanting,
)
from drivefeed.catalog.tables import imports, ledger, orgs
from drivefeed.domain.converge import apply, is_in_use
from drivefeed.domain.errors import NotFound
from drivefeed.domain.lifecycle import Event, State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.reminders import Claim
    from drivefeed.domain.model import Document, Import
    from drivefeed.domain.reasons import Reason

_FACTS = frozenset(
    {"backend_job", "deadline_at", "size", "sha256", "integrity", "pages", "chunks", "shown"}
)


async def siblings(catalog: Catalog, document_id: str) -> dict[str, Import]:
    """Return all imports of a document."""
    async with catalog.read() as connection:
        found = await load(connection, [document_id])
    return found[document_id][1] if document_id in found else {}


async def whole(connection: AsyncConnection, import_id: str) -> tuple[Document, dict[str, Import]]:
    """Return, within a transaction, the document of an import with all its imports.

    Raises:
        NotFound: there is no such import.
    """
    found = await load_around(connection, import_id)
    if found is None:
        raise NotFound(f"There is no import {import_id} in the catalog.")
    return found


async def advance(
    catalog: Catalog,
    import_id: str,
    event: Event,
    *,
    round_: int,
    facts: Mapping[str, Any] | None = None,
    reason: Reason | None = None,
    detail: str = "",
    same_as: str | None = None,
    claim: Claim | None = None,
) -> Import:
    """Apply one event to an import, with everything that follows from it, in one transaction.

    Where the event no longer changes the state (somebody changed the document's mind meanwhile),
    the facts are still recorded: an object that was stored or a backend job that is known is
    never forgotten.

    Args:
        round_: the round the facts belong to; facts of an earlier round are dropped, because
            their effects carry that round in their names and were withdrawn with it.
        same_as: with ``SAME_BYTES``, the import that holds the same bytes and is wanted instead.
        claim: the claim to release with the commit.
    """
    now = catalog.clock.now()
    async with catalog.write(f"advance.{event}", beside=True) as connection:
        before, known = await whole(connection, import_id)
        old = known[import_id]
        # A withdrawal that was begun before the file came back has nothing to withdraw any more.
        is_void = event is Event.UNWANTED and is_in_use(before, old)
        if old.round != round_ or is_void:
            await _release(connection, claim)
            return old
        document = before
        new = apply(old, event, reason=reason)
        if new is None:
            new = replace(old, revision=old.revision + 1)
        new = replace(new, **_only_facts(facts))
        if new.state is State.SETTLED and new.misplaced:
            # The place it was submitted with is not the present one.
            new = replace(new, misplaced=False)
            document = replace(document, misplaced=True)
        known[import_id] = new
        await save_import(connection, new)
        await record_event(connection, new, event, now=now, reason=reason, detail=detail)
        if same_as is not None and event is Event.SAME_BYTES:
            await connection.execute(
                update(imports).where(imports.c.id == import_id).values(same_as=same_as)
            )
            if document.wanted == import_id:
                document = wanting(document, same_as)
        if event is Event.SETTLED and new.state != old.state:
            await _charge(connection, new, now=now)
        await settle_into(connection, before, document, known, now=now, moved=[import_id])
        if detail and event is Event.REFUSED:
            await set_detail(connection, import_id, detail)
        await _release(connection, claim)
    return new


def _only_facts(facts: Mapping[str, Any] | None) -> dict[str, Any]:
    unknown = set(facts or {}) - _FACTS
    if unknown:
        raise ValueError(f"Not facts of an import: {', '.join(sorted(unknown))}")
    return dict(facts or {})


async def _release(connection: AsyncConnection, claim: Claim | None) -> None:
    if claim is not None:
        await reminders.release(connection, claim)


async def set_detail(connection: AsyncConnection, import_id: str, detail: str) -> None:
    """Keep the last words about an import, for the person who asks why."""
    await connection.execute(update(imports).where(imports.c.id == import_id).values(detail=detail))


async def _charge(connection: AsyncConnection, one: Import, *, now: int) -> None:
    """Charge a version once for ever; the counter moves only with the inserted row."""
    pages = one.pages or 0
    inserted = await insert_once(
        connection,
        ledger,
        {
            "org_id": one.org_id,
            "document_id": one.document_id,
            "import_id": one.import_id,
            "sha256": one.sha256 or f"unknown:{one.import_id}",
            "pages": pages,
            "at": now,
        },
    )
    if inserted:
        await connection.execute(
            update(orgs).where(orgs.c.id == one.org_id).values(pages_used=orgs.c.pages_used + pages)
        )
    await connection.execute(
        update(imports).where(imports.c.id == one.import_id).values(settled_at=now)
    )

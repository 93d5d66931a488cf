"""``advance``: the one way in which an import changes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update

from drivefeed.catalog import reminders
from drivefeed.catalog.documents import (
    load,
    load_around,
    record_event,
    save_import,
    settle_into,
    wanting,
)
from drivefeed.catalog.engine import now_of
from drivefeed.catalog.ledger import OURS, charge
from drivefeed.catalog.quota import balance_of, hold_pages
from drivefeed.catalog.tables import imports
from drivefeed.catalog.usage_tables import reservations
from drivefeed.domain.converge import apply, is_in_use
from drivefeed.domain.errors import NotFound
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.reasons import Reason
from drivefeed.domain.words import count_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.quota import Need
    from drivefeed.catalog.reminders import Claim
    from drivefeed.domain.model import Document, Import

_FACTS = frozenset(
    {
        *("backend", "backend_job", "deadline_at", "size", "sha256", "integrity", "pages"),
        *("chunks", "shown"),
    }
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
    need: Need | None = None,
    usage_owner: str = OURS,
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
        need: with ``STORED``, the pages that it needs; where they do not fit, it is stored and
            waits for them.
        usage_owner: with ``SETTLED``, who counts usage; see :mod:`drivefeed.catalog.ledger`.
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
        if need is not None and new.state is State.STORED and old.state is State.DISCOVERED:
            fits = await hold_pages(connection, new, need)
            new = new if fits else replace(new, hold=Reason.QUOTA)
        known[import_id] = new
        await save_import(connection, new)
        pages = new.pages if event is Event.SETTLED else None
        await record_event(
            connection, new, event, now=now, reason=reason, detail=detail, pages=pages
        )
        if new.hold is Reason.QUOTA:
            await note_wait(connection, new)
        if same_as is not None and event is Event.SAME_BYTES:
            await connection.execute(
                update(imports).where(imports.c.id == import_id).values(same_as=same_as)
            )
            if document.wanted == import_id:
                document = wanting(document, same_as)
        if event is Event.SETTLED and new.state != old.state:
            await charge(connection, new, now=now, usage_owner=usage_owner)
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


async def note_wait(connection: AsyncConnection, one: Import) -> None:
    """Tell in the passport of an import how many pages it waits for."""
    balance = await balance_of(connection, one.org_id)
    row = await connection.execute(
        select(reservations.c.wanted, reservations.c.counted).where(
            reservations.c.import_id == one.import_id, reservations.c.round == one.round
        )
    )
    wanted, counted = row.one()
    about = "" if counted else "about "
    words = f"it needs {about}{count_of(wanted, 'page')}, and {balance.free} are free"
    await set_detail(connection, one.import_id, words)
    await record_event(
        connection, one, "held", now=now_of(connection), reason=Reason.QUOTA, detail=words
    )

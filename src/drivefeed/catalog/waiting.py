"""Waiting: an import that is to be done again, asks a person, is held, or is set free."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import select, update

from drivefeed.catalog import reminders
from drivefeed.catalog.documents import lock_around, record_event, save_import, settle_into
from drivefeed.catalog.imports import set_detail, whole
from drivefeed.catalog.quota import release_pages
from drivefeed.catalog.tables import connections, coverage, documents, imports
from drivefeed.domain.converge import apply
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.reminders import Claim
    from drivefeed.domain.model import Import


async def again(
    catalog: Catalog,
    claim: Claim,
    *,
    due_at: int,
    hold: Reason | None = None,
    detail: str = "",
    polled: bool = False,
) -> None:
    """Do the same stage again later: no attempt used, no slot held."""
    async with catalog.write("again", beside=True) as connection:
        await lock_around(connection, claim.subject_id)
        # Where the row was written again meanwhile, something else is due already.
        if await reminders.number_of(connection, claim.subject_id) == claim.number:
            await reminders.postpone(connection, claim.subject_id, due_at=due_at)
            values: dict[str, Any] = {"hold": hold}
            if hold is not None:
                values["detail"] = detail
            if polled:
                values["poll_count"] = imports.c.poll_count + 1
            await connection.execute(
                update(imports)
                .where(imports.c.id == claim.subject_id, _changes_hold(hold, polled=polled))
                .values(values)
            )
            if hold is Reason.QUIET_HOURS:
                await _release_pages(connection, claim.subject_id)
        await reminders.release(connection, claim)


async def note_hold(
    catalog: Catalog, import_id: str, round_: int, *, hold: Reason, detail: str
) -> None:
    """Say what keeps a submitted import back in the embedded backend; its next poll says no more.

    Nothing is written where it says so already, or a person is asked.
    """
    async with catalog.write("index_job.hold", beside=True) as connection:
        await lock_around(connection, import_id)
        await connection.execute(
            update(imports)
            .where(
                imports.c.id == import_id,
                imports.c.round == round_,
                imports.c.state == State.SUBMITTED,
                imports.c.attention.is_(None),
                imports.c.hold.is_distinct_from(hold),
            )
            .values(hold=hold, detail=detail)
        )


def _changes_hold(hold: Reason | None, *, polled: bool) -> Any:
    if polled:
        return True
    return imports.c.hold.is_distinct_from(hold)


async def ask_a_person(
    catalog: Catalog, claim: Claim, *, reason: Reason, detail: str, keep_due: int | None = None
) -> None:
    """Put an import under Attention; nothing is due for it until somebody clears it.

    The number stays, so that a retry of the same delivery on the board runs it again.

    Args:
        keep_due: when the stage is due all the same (a late backend is still asked).
    """
    now = catalog.clock.now()
    async with catalog.write("attention", beside=True) as connection:
        _, known = await whole(connection, claim.subject_id)
        one = known[claim.subject_id]
        if await reminders.number_of(connection, claim.subject_id) == claim.number:
            asked = replace(one, attention=reason, hold=None, revision=one.revision + 1)
            await save_import(connection, asked)
            await set_detail(connection, one.import_id, detail)
            if keep_due is not None:
                await reminders.postpone(connection, claim.subject_id, due_at=keep_due)
            else:
                await reminders.rest(connection, claim.subject_id)
            one = asked
        # Otherwise another step is due by now, and nobody needs to look; the story is kept.
        await record_event(connection, one, "attention", now=now, reason=reason, detail=detail)
        await reminders.release(connection, claim)


async def clear(catalog: Catalog, import_id: str, *, event: str = "retry") -> Import:
    """Clear Attention and hold, take a rejected import back, and make its next stage due now.

    A rejected import is withdrawn first, so that nothing of the rejected round is left behind;
    convergence then admits it again. A submitted one is submitted again under its key.
    """
    now = catalog.clock.now()
    async with catalog.write("clear", beside=True) as connection:
        before, known = await whole(connection, import_id)
        old = known[import_id]
        new = replace(old, attention=None, hold=None, revision=old.revision + 1)
        if old.state is State.REJECTED and before.wanted == import_id:
            new = apply(old, Event.UNWANTED, reason=old.reason) or new
        elif old.state is State.SUBMITTED:
            new = replace(new, backend_job=None, deadline_at=None, poll_count=0)
        known[import_id] = new
        await save_import(connection, new)
        await record_event(connection, new, event, now=now)
        await settle_into(
            connection,
            before,
            before,
            known,
            now=now,
            moved=[import_id],
            lane=reminders.LANE_FRESH,
        )
    return new


async def clear_cured(
    catalog: Catalog, drive_id: str, reasons: Collection[Reason], *, most: int = 500
) -> int:
    """Let the files of a drive go on that waited for a sign-in or a right; return how many.

    Called when the drive itself answers again, so that no file has to ask for that on its own.
    """
    found = (
        select(imports.c.id)
        .join(documents, documents.c.id == imports.c.document_id)
        .where(
            imports.c.attention.is_not(None),
            imports.c.attention.in_(sorted(reasons)),
            documents.c.drive_id == drive_id,
        )
        .limit(most)
    )
    async with catalog.read() as connection:
        waiting = list((await connection.execute(found)).scalars())
    for import_id in waiting:
        await clear(catalog, import_id, event="cured")
    return len(waiting)


async def note_attempt(catalog: Catalog, claim: Claim, *, error: str, attempt: int) -> None:
    """Record a failed attempt in the passport and let the claim go; the queue tries again."""
    now = catalog.clock.now()
    async with catalog.write("attempt", beside=True) as connection:
        _, known = await whole(connection, claim.subject_id)
        await record_event(
            connection,
            known[claim.subject_id],
            "attempt_failed",
            now=now,
            detail=f"{claim.stage}, attempt {attempt}: {error}",
        )
        await reminders.release(connection, claim)


async def unattended(catalog: Catalog, import_id: str) -> Import:
    """Clear Attention because a person retried the very delivery; nothing else changes."""
    now = catalog.clock.now()
    async with catalog.write("unattended", beside=True) as connection:
        _, known = await whole(connection, import_id)
        old = known[import_id]
        new = replace(old, attention=None, revision=old.revision + 1)
        await save_import(connection, new)
        await record_event(connection, new, "retry", now=now, detail="on the board")
    return new


async def park(catalog: Catalog, claim: Claim, *, hold: Reason) -> None:
    """Hold an import until something wakes it; nothing is due for it meanwhile.

    Where a connection was resumed since the stage looked, nothing would wake it any more, so the
    stage is due again at once.
    """
    async with catalog.write("park", beside=True) as connection:
        await lock_around(connection, claim.subject_id)
        if await reminders.number_of(connection, claim.subject_id) == claim.number:
            if hold is Reason.PAUSED and not await _is_paused(connection, claim.subject_id):
                now = catalog.clock.now()
                await reminders.postpone(connection, claim.subject_id, due_at=now)
            else:
                await connection.execute(
                    update(imports).where(imports.c.id == claim.subject_id).values(hold=hold)
                )
                await _release_pages(connection, claim.subject_id)
                await reminders.rest(connection, claim.subject_id)
        await reminders.release(connection, claim)


async def _release_pages(connection: AsyncConnection, import_id: str) -> None:
    _, known = await whole(connection, import_id)
    one = known[import_id]
    if one.state is not State.SUBMITTED:
        await release_pages(connection, one)


async def _is_paused(connection: AsyncConnection, import_id: str) -> bool:
    pauses = await connection.execute(
        select(connections.c.paused)
        .join(coverage, coverage.c.connection_id == connections.c.id)
        .join(imports, imports.c.document_id == coverage.c.document_id)
        .where(imports.c.id == import_id, coverage.c.admitted)
    )
    found = list(pauses.scalars())
    return bool(found) and all(found)

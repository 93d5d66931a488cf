"""A restored catalog as rows: how far its recovery is, and what has to be done again."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, exists, func, or_, select, update

from drivefeed.catalog.dialect import batches, insert
from drivefeed.catalog.documents import load, record_event, save_import, settle_into
from drivefeed.catalog.imports import whole
from drivefeed.catalog.tables import (
    connections,
    documents,
    drives,
    facts,
    heartbeats,
    imports,
    index_jobs,
    leases,
    orgs,
    reminders,
)
from drivefeed.domain.converge import apply
from drivefeed.domain.lifecycle import Event, State
from drivefeed.domain.reasons import Reason
from drivefeed.ports import IndexJobState

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog

FACT: Final = "restored"
_CHUNK: Final = 200


@dataclass(frozen=True, slots=True)
class Restored:
    """The last restore of this catalog.

    Attributes:
        epoch: names it.
        at: when it was.
        queue_cleared: whether the queue was emptied since, and nothing counts as sent.
        done_at: when everything was found to agree again.
        elsewhere: what was compared with other backends and what was not, as sentences.
    """

    epoch: str
    at: int
    queue_cleared: bool = False
    done_at: int | None = None
    elsewhere: tuple[str, ...] = ()


async def restored(catalog: Catalog) -> Restored | None:
    """Return the last restore of this catalog; None where there was none."""
    async with catalog.read() as connection:
        return await _read(connection)


async def _read(connection: AsyncConnection) -> Restored | None:
    value = await connection.scalar(select(facts.c.value).where(facts.c.name == FACT))
    if value is None:
        return None
    said = json.loads(value)
    return Restored(**{**said, "elsewhere": tuple(said.get("elsewhere", ()))})


async def _write(connection: AsyncConnection, one: Restored) -> None:
    value = json.dumps(
        {
            "epoch": one.epoch,
            "at": one.at,
            "queue_cleared": one.queue_cleared,
            "done_at": one.done_at,
            "elsewhere": one.elsewhere,
        }
    )
    statement = insert(connection, facts).values(name=FACT, value=value)
    await connection.execute(
        statement.on_conflict_do_update(index_elements=["name"], set_={"value": value})
    )


async def mark_restored(catalog: Catalog, *, epoch: str) -> None:
    """Say that the database was put back to an earlier time by its own means."""
    async with catalog.write("restore.mark") as connection:
        await _write(connection, Restored(epoch, catalog.clock.now()))


async def begin_anew(catalog: Catalog, one: Restored) -> None:
    """Let go of what processes of the earlier time held; every row counts as unsent.

    To be called once the queue was emptied, and before anybody works. Whoever said after the
    restore that it is alive is of this time, and stays known.
    """
    async with catalog.write("restore.anew") as connection:
        await connection.execute(delete(heartbeats).where(heartbeats.c.seen_at < one.at))
        is_earlier = leases.c.owner.not_in(select(heartbeats.c.owner))
        await connection.execute(update(leases).where(is_earlier).values(until=0))
        await connection.execute(
            update(reminders)
            .where(or_(reminders.c.sent_at.is_not(None), reminders.c.owner.is_not(None)))
            .values(sent_at=None, remind_at=None, owner=None, busy_until=None)
        )
        await _write(connection, Restored(one.epoch, one.at, queue_cleared=True))


async def mark_recovered(catalog: Catalog, one: Restored, elsewhere: tuple[str, ...] = ()) -> None:
    """Say that everything agrees again, as far as it was compared."""
    async with catalog.write("restore.done") as connection:
        now = catalog.clock.now()
        done = replace(one, queue_cleared=True, done_at=now, elsewhere=elsewhere)
        await _write(connection, done)


async def drives_behind(catalog: Catalog, *, since: int) -> int:
    """Count drives that completed no round of changes since then and could.

    Those that wait for a person, or whose connections are all paused, are not waited for.
    """
    flows = exists().where(
        connections.c.drive_id == drives.c.id,
        connections.c.paused.is_(False),
        connections.c.attention.is_(None),
    )
    scans = exists().where(connections.c.drive_id == drives.c.id, connections.c.admitting)
    behind = or_(
        drives.c.last_round_at.is_(None),
        drives.c.last_round_at < since,
        drives.c.enumerating,
        drives.c.settling,
        scans,
    )
    async with catalog.read() as connection:
        count = await connection.scalar(
            select(func.count())
            .select_from(drives)
            .where(drives.c.attention.is_(None), flows, behind)
        )
    return count or 0


async def known_orgs(catalog: Catalog) -> frozenset[str]:
    """Return the ids of all organizations, with which the keys of their objects begin."""
    async with catalog.read() as connection:
        return frozenset((await connection.execute(select(orgs.c.id))).scalars())


async def present_round(catalog: Catalog, import_id: str) -> int | None:
    """Return the round that an import is in; None where it is unknown or was withdrawn."""
    async with catalog.read() as connection:
        number: int | None = await connection.scalar(
            select(imports.c.round).where(
                imports.c.id == import_id, imports.c.state != State.WITHDRAWN
            )
        )
    return number


async def import_again(catalog: Catalog, import_id: str, round_: int, *, detail: str) -> bool:
    """Import a version again in a new round, because what it had outside is gone.

    It is charged no more: the ledger knows it.

    Returns:
        False where it is in another round by now, or cannot be.
    """
    now = catalog.clock.now()
    async with catalog.write("restore.again") as connection:
        before, known = await whole(connection, import_id)
        old = known[import_id]
        event = Event.CANCELLED if old.state is State.SUBMITTED else Event.UNWANTED
        new = apply(old, event, reason=Reason.LOST)
        if old.round != round_ or new is None:
            return False
        known[import_id] = new
        await save_import(connection, new)
        await record_event(connection, new, event, now=now, reason=Reason.LOST, detail=detail)
        await settle_into(connection, before, before, known, now=now, moved=[import_id])
    return True


async def index_again(catalog: Catalog, import_id: str, key: str) -> str | None:
    """Make the embedded backend's finished job of a round due again; return the job's id.

    Returns:
        None where there is no such job, or it did not end well: then only a new round helps.
    """
    now = catalog.clock.now()
    async with catalog.write("restore.index") as connection:
        found = await connection.execute(
            update(index_jobs)
            .where(index_jobs.c.key == key, index_jobs.c.import_id == import_id)
            .where(index_jobs.c.state == IndexJobState.DONE)
            .values(state=IndexJobState.QUEUED, progress=0)
            .returning(index_jobs.c.id)
        )
        job_id = found.scalar_one_or_none()
        if job_id is None:
            return None
        await connection.execute(
            update(reminders)
            .where(reminders.c.subject_id == job_id)
            .values(
                number=reminders.c.number + 1,
                stage="index",
                due_at=now,
                sent_at=None,
                remind_at=None,
                starts=0,
            )
        )
    return str(job_id)


async def still_queued(catalog: Catalog, job_ids: Collection[str]) -> set[str]:
    """Return those of the embedded backend's jobs that have not ended."""
    found: set[str] = set()
    async with catalog.read() as connection:
        for batch in batches(job_ids):
            rows = await connection.execute(
                select(index_jobs.c.id).where(
                    index_jobs.c.id.in_(batch), index_jobs.c.state == IndexJobState.QUEUED
                )
            )
            found.update(rows.scalars())
    return found


async def show_again(catalog: Catalog, *, after: str) -> str | None:
    """Have flag, name and folders of a chunk of documents carried to the index once more.

    Args:
        after: the id of the last document of the chunk before; empty to begin.

    Returns:
        The id to go on after; None once there are no more.
    """
    now = catalog.clock.now()
    has_settled = exists().where(
        imports.c.document_id == documents.c.id, imports.c.state == State.SETTLED
    )
    async with catalog.write("restore.show") as connection:
        chunk = await connection.execute(
            select(documents.c.id)
            .where(documents.c.id > after, has_settled)
            .order_by(documents.c.id)
            .limit(_CHUNK)
        )
        ids = list(chunk.scalars())
        await connection.execute(
            update(documents)
            .where(documents.c.id.in_(ids), documents.c.live_import_id.is_not(None))
            .values(misplaced=True)
        )
        await connection.execute(
            update(imports)
            .where(imports.c.document_id.in_(ids), imports.c.state == State.SETTLED)
            .values(shown=None, revision=imports.c.revision + 1)
        )
        for document, known in (await load(connection, ids)).values():
            settled = [key for key, one in known.items() if one.state is State.SETTLED]
            await settle_into(connection, document, document, known, now=now, moved=settled)
    return ids[-1] if len(ids) == _CHUNK else None

"""What the catalog forgets with age: rows that nothing needs any more, a bounded chunk at a time.

Never forgotten, whatever its age (see :data:`KEPT`): what money, a retry or a person's decision
hangs on.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from sqlalchemy import String, and_, cast, delete, or_, select, update

from drivefeed.catalog.access_tables import api_keys, notice_deliveries, notices
from drivefeed.catalog.dialect import batches, insert
from drivefeed.catalog.tables import (
    facts,
    heartbeats,
    import_events,
    imports,
    index_jobs,
    reminders,
)
from drivefeed.domain.lifecycle import Event, State
from drivefeed.ports import IndexJobState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import ColumnElement, Table

    from drivefeed.catalog.engine import Catalog

KEPT: Final[dict[str, str]] = {
    "orgs": "The counters of usage.",
    "accounts": "Routes to drives; people remove them.",
    "credentials": "Secrets; people replace them.",
    "drives": "The position in the changes of a drive.",
    "items": "The shadow tree, against which every change is read.",
    "connections": "What people decided.",
    "documents": "What is wanted and what is live.",
    "coverage": "Why a file is in or out.",
    "imports": "A version's round: keys that name (import, round) must never come again.",
    "reminders": "A subject's number: a delivery's id must never come again.",
    "ledger": "What was charged.",
    "reservations": "What was held for each round, and what became of it.",
    "leases": "A lease's term, by which a late writer is told from the present one.",
    "facts": "What holds for the whole installation.",
    "audit_log": "Who did what; no part of drivefeed may forget that.",
    "subscriptions": "Of whose changes Microsoft tells us; ended with their connections.",
    "reindexed": "What a reindex has built; the reindex removes it.",
    "collections": "What the index is made with; a reindex removes what is over.",
    "org_embeddings": "What organizations chose; a choice that nothing needs goes with a reindex.",
}
"""Tables of which no row is ever pruned, and why."""

ENDS: Final = frozenset({Event.REMOVED, Event.REFUSED, Event.CANCELLED, Event.SAME_BYTES})
"""Events that say how a round ended; they are kept longer than the steps on the way there."""
CHARGES: Final = frozenset({Event.SETTLED})
"""Events from which the ledger can be made again; they are kept for ever."""

CHUNK: Final = 1_000
_FACT = "retention"
_OVER = frozenset({IndexJobState.DONE, IndexJobState.REFUSED, IndexJobState.CANCELLED})


async def prune_events(
    catalog: Catalog, *, after: int, steps_before: int, ends_before: int
) -> tuple[int, int | None]:
    """Delete a chunk of old events of ended rounds.

    A round has ended where its import is in a later one, or was withdrawn. What a rejected
    import waits for is told by its events, so they stay.

    Args:
        after: the number of the last event that was looked at; 0 to begin.
        steps_before: steps older than this instant are deleted.
        ends_before: how a round ended is deleted if it is older than this.

    Returns:
        How many were deleted, and the number to go on after; None once all were looked at.
    """
    e = import_events.c
    chunk = select(e.id, e.at).where(e.id > after).order_by(e.id).limit(CHUNK)
    async with catalog.read() as connection:
        seen = (await connection.execute(chunk)).all()
    old = [row.id for row in seen if row.at < max(steps_before, ends_before)]
    # Events are numbered as they happen, so that what follows a whole young chunk is young too.
    last = seen[-1].id if len(seen) == CHUNK and old else None
    if not old:
        return 0, last
    has_ended = select(imports.c.id).where(
        imports.c.id == e.import_id,
        or_(imports.c.round > e.round, imports.c.state == State.WITHDRAWN),
    )
    is_old = or_(
        and_(e.event.not_in(sorted(ENDS)), e.at < steps_before),
        and_(e.event.in_(sorted(ENDS)), e.at < ends_before),
    )
    return await _delete(
        catalog,
        "events",
        import_events,
        e.id.between(old[0], old[-1]),
        e.event.not_in(sorted(CHARGES)),
        is_old,
        has_ended.exists(),
    ), last


async def prune_details(catalog: Catalog, *, after: str, before: int) -> tuple[int, str | None]:
    """Clear the last words about a chunk of versions that were withdrawn long ago.

    Args:
        after: the id of the last import that was looked at; empty to begin.
        before: versions with a younger event keep their words.

    Returns:
        How many were cleared, and the id to go on after; None once all were looked at.
    """
    young = select(import_events.c.id).where(
        import_events.c.import_id == imports.c.id, import_events.c.at >= before
    )
    seen = (
        select(imports.c.id)
        .where(imports.c.state == State.WITHDRAWN, imports.c.id > after)
        .order_by(imports.c.id)
        .limit(CHUNK)
    )
    async with catalog.read() as connection:
        found = list((await connection.execute(seen)).scalars())
    if not found:
        return 0, None
    async with catalog.write("retention.details") as connection:
        cleared = await connection.execute(
            update(imports)
            .where(
                imports.c.id.between(found[0], found[-1]),
                imports.c.state == State.WITHDRAWN,
                imports.c.detail.is_not(None),
                imports.c.created_at < before,
                ~young.exists(),
            )
            .values(detail=None)
        )
    return cleared.rowcount, found[-1] if len(found) == CHUNK else None


async def prune_index_jobs(catalog: Catalog, *, after: str, before: int) -> tuple[int, str | None]:
    """Delete a chunk of old jobs of the embedded backend whose rounds have ended.

    The job of a round that may still be asked for stays: its key is what keeps a submission from
    being done twice. So do jobs of imports that this catalog does not know; another installation
    may have submitted them.

    Args:
        after: the id of the last job that was looked at; empty to begin.

    Returns:
        How many were deleted, and the id to go on after; None once all were looked at.
    """
    j = index_jobs.c
    seen = select(j.id).where(j.id > after).order_by(j.id).limit(CHUNK)
    async with catalog.read() as connection:
        found = list((await connection.execute(seen)).scalars())
    if not found:
        return 0, None
    has_ended = select(imports.c.id).where(
        imports.c.id == j.import_id,
        or_(
            imports.c.state == State.WITHDRAWN,
            j.key != imports.c.id + ":" + cast(imports.c.round, String),
        ),
    )
    count = await _delete(
        catalog,
        "index_jobs",
        index_jobs,
        j.id.between(found[0], found[-1]),
        j.state.in_(sorted(_OVER)),
        j.created_at < before,
        has_ended.exists(),
    )
    return count, found[-1] if len(found) == CHUNK else None


async def prune_notices(catalog: Catalog, *, before: int) -> int:
    """Delete a chunk of notices that were over before that time, with their deliveries."""
    over = (
        select(notices.c.id)
        .where(notices.c.over_at < before)
        .order_by(notices.c.over_at)
        .limit(CHUNK)
    )
    async with catalog.read() as connection:
        found = list((await connection.execute(over)).scalars())
    if not found:
        return 0
    async with catalog.write("notice.forget") as connection:
        for batch in batches(found):
            await connection.execute(
                delete(notice_deliveries).where(notice_deliveries.c.notice_id.in_(batch))
            )
            await connection.execute(delete(notices).where(notices.c.id.in_(batch)))
    return len(found)


async def prune_sessions(catalog: Catalog, *, before: int) -> int:
    """Delete links and sessions of the status page that ended before that time.

    API keys stay when they are revoked, so that people can look at them.
    """
    k = api_keys.c
    return await _delete(
        catalog,
        "sessions",
        api_keys,
        or_(k.is_link, k.is_session),
        or_(k.expires_at < before, k.revoked_at < before),
    )


async def prune_heartbeats(catalog: Catalog, *, before: int) -> int:
    """Delete heartbeats of processes that were last seen before that time and own nothing."""
    owns = select(reminders.c.subject_id).where(reminders.c.owner == heartbeats.c.owner)
    return await _delete(
        catalog,
        "heartbeats",
        heartbeats,
        heartbeats.c.seen_at < before,
        ~owns.exists(),
    )


async def _delete(catalog: Catalog, kind: str, table: Table, *where: ColumnElement[bool]) -> int:
    """Delete rows; nothing is written where there are none."""
    async with catalog.read() as connection:
        found = await connection.execute(select(*table.primary_key.columns).where(*where).limit(1))
        if found.first() is None:
            return 0
    async with catalog.write(f"retention.{kind}") as connection:
        return (await connection.execute(delete(table).where(*where))).rowcount


async def record_pass(catalog: Catalog, pruned: Mapping[str, int]) -> None:
    """Remember when everything was looked at last, and how many rows of each kind went then."""
    value = json.dumps({"at": catalog.clock.now(), "pruned": dict(pruned)})
    async with catalog.write("retention.done") as connection:
        statement = insert(connection, facts).values(name=_FACT, value=value)
        await connection.execute(
            statement.on_conflict_do_update(index_elements=["name"], set_={"value": value})
        )


async def last_pass(catalog: Catalog) -> tuple[int, dict[str, int]] | None:
    """Return when everything was looked at last, and how many rows went; None before that."""
    async with catalog.read() as connection:
        value = await connection.scalar(select(facts.c.value).where(facts.c.name == _FACT))
    if value is None:
        return None
    said = json.loads(value)
    return int(said["at"]), {str(name): int(count) for name, count in said["pruned"].items()}

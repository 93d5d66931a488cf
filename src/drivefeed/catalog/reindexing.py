"""How far a reindex is: what is to be built beside, what was, and the commit of the swap."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlalchemy import String, and_, cast, func, select, update

from drivefeed.catalog.collection_rows import ALL
from drivefeed.catalog.collections import has_its_own, put_in_use
from drivefeed.catalog.dialect import upsert
from drivefeed.catalog.documents import reason_of
from drivefeed.catalog.index_turns import require_turn
from drivefeed.catalog.tables import documents, imports, index_jobs, reindexed
from drivefeed.domain.lifecycle import State
from drivefeed.ports import IndexJobState, Submission

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.collection_rows import Collections
    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.reasons import Reason

_IN_INDEX = (State.SUBMITTED, State.SETTLED)
_IMPORT_BUILT = and_(reindexed.c.import_id == imports.c.id, reindexed.c.round == imports.c.round)
_JOB_BUILT = index_jobs.c.key == reindexed.c.import_id + ":" + cast(reindexed.c.round, String)


@dataclass(frozen=True, slots=True)
class Beside:
    """A collection that is being built, and for whose documents.

    Attributes:
        index: what the catalog calls the vector index.
        collection: its name.
        org_id: the organization; empty for all that have no collection of their own.
    """

    index: str
    collection: str
    org_id: str = ALL

    @property
    def holds(self) -> ColumnElement[bool]:
        """The condition that an import belongs into it."""
        if self.org_id:
            return imports.c.org_id == self.org_id
        return ~has_its_own(self.index, imports.c.org_id)


@dataclass(frozen=True, slots=True)
class Standing:
    """How a round of an import should stand in an index now."""

    live: bool
    name: str
    folders: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a reindex is, in files."""

    done: int
    total: int
    failed: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A file that could not be read again."""

    import_id: str
    name: str
    reason: Reason | None
    detail: str


async def unbuilt(
    catalog: Catalog, beside: Beside, *, limit: int, after: str = ""
) -> list[Submission]:
    """Return what has points in the active collection and was not built yet, by import id.

    Args:
        beside: what is being built.
        limit: at most so many.
        after: only imports whose ids come after this one.
    """
    async with catalog.read() as connection:
        return await _unbuilt(connection, beside, limit, after)


async def standing_of(catalog: Catalog, beside: Beside, sent: Submission) -> Standing | None:
    """Return how a round should stand in a collection, or None if it should have no points."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(
                imports.c.state,
                imports.c.round,
                documents.c.name,
                documents.c.folders,
                documents.c.live_import_id,
                documents.c.live_round,
            )
            .join(documents, documents.c.id == imports.c.document_id)
            .where(imports.c.id == sent.import_id, beside.holds)
        )
        row = rows.one_or_none()
    if row is None or row.round != sent.round or row.state not in _IN_INDEX:
        return None
    is_live = (row.live_import_id, row.live_round) == (sent.import_id, sent.round)
    # What the backend has just finished is shown until its poll decides.
    return Standing(
        live=is_live or row.state == State.SUBMITTED,
        name=row.name,
        folders=tuple(json.loads(row.folders)),
    )


async def record_built(
    catalog: Catalog,
    collection: str,
    sent: Submission,
    *,
    chunks: int | None,
    reason: Reason | None = None,
    detail: str = "",
) -> None:
    """Record that a round was built with so many points, or why it could not be."""
    row = {
        "collection": collection,
        "import_id": sent.import_id,
        "round": sent.round,
        "chunks": chunks,
        "reason": reason,
        "detail": detail,
    }
    async with catalog.write("reindex.built") as connection:
        await upsert(connection, reindexed, [row])


async def forget_built(catalog: Catalog, collection: str, import_id: str, round_: int) -> None:
    """Have a round built again."""
    async with catalog.write("reindex.forget") as connection:
        await connection.execute(
            reindexed.delete().where(
                reindexed.c.collection == collection,
                reindexed.c.import_id == import_id,
                reindexed.c.round == round_,
            )
        )


async def built(catalog: Catalog, beside: Beside) -> dict[tuple[str, int], int]:
    """Return the points of each round that was built."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(reindexed.c.import_id, reindexed.c.round, reindexed.c.chunks)
            .join(imports, imports.c.id == reindexed.c.import_id)
            .where(
                reindexed.c.collection == beside.collection,
                reindexed.c.chunks.is_not(None),
                beside.holds,
            )
        )
        return {(row.import_id, row.round): row.chunks for row in rows}


async def progress_of(catalog: Catalog, beside: Beside) -> Progress:
    """Count what is built and what there is."""
    async with catalog.read() as connection:
        row = (
            await connection.execute(
                select(
                    func.count(),
                    func.count(reindexed.c.import_id),
                    func.count(reindexed.c.chunks),
                )
                .select_from(imports)
                .join(index_jobs, _job_of_round())
                .outerjoin(reindexed, _built_round(beside.collection))
                .where(imports.c.state.in_(_IN_INDEX), beside.holds)
            )
        ).one()
    return Progress(done=row[2], total=row[0], failed=row[1] - row[2])


async def unreadable(catalog: Catalog, beside: Beside, *, limit: int = 20) -> list[Unreadable]:
    """Return files that could not be read again, with the reasons."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(reindexed.c.import_id, documents.c.name, reindexed.c.reason, reindexed.c.detail)
            .select_from(imports)
            .join(documents, documents.c.id == imports.c.document_id)
            .join(reindexed, _built_round(beside.collection))
            .where(imports.c.state.in_(_IN_INDEX), reindexed.c.chunks.is_(None), beside.holds)
            .order_by(documents.c.name)
            .limit(limit)
        )
        return [
            Unreadable(row.import_id, row.name, reason_of(row.reason), row.detail) for row in rows
        ]


async def swap(
    catalog: Catalog, beside: Beside, guard: tuple[str, str] | None = None
) -> Collections | None:
    """Put the built collection in use, with its numbers of points; None if something is missing.

    One commit: until it, everything belongs to the former collection.

    Args:
        guard: the index and the process that must have it alone still; None where it always has.

    Raises:
        Transient: it has it no more.
    """
    now = catalog.clock.now()
    async with catalog.write("reindex.swap") as connection:
        if guard is not None:
            await require_turn(connection, *guard, now=now)
        if await _unbuilt(connection, beside, 1):
            return None
        mine = select(imports.c.id).where(beside.holds)
        for table, import_id, is_its_round in (
            (imports, imports.c.id, _IMPORT_BUILT),
            (index_jobs, index_jobs.c.import_id, _JOB_BUILT),
        ):
            chunks = (
                select(reindexed.c.chunks)
                .where(reindexed.c.collection == beside.collection, is_its_round)
                .scalar_subquery()
            )
            await connection.execute(
                update(table).where(import_id.in_(mine), chunks.is_not(None)).values(chunks=chunks)
            )
        return await put_in_use(connection, beside.index, beside.org_id)


async def documents_of(catalog: Catalog, org_id: str) -> int:
    """Count the versions of documents that an organization has in an index of ours."""
    async with catalog.read() as connection:
        count = await connection.scalar(
            select(func.count())
            .select_from(imports)
            .join(index_jobs, _job_of_round())
            .where(imports.c.state.in_(_IN_INDEX), imports.c.org_id == org_id)
        )
    return count or 0


async def _unbuilt(
    connection: AsyncConnection, beside: Beside, limit: int, after: str = ""
) -> list[Submission]:
    rows = await connection.execute(_left(beside).where(imports.c.id > after).limit(limit))
    found = []
    for row in rows:
        fields = json.loads(row.submission)
        fields["folders"] = tuple(json.loads(row.folders))
        found.append(replace(Submission(**fields), name=row.name))
    return found


def _left(beside: Beside) -> Select[tuple[str, str, str]]:
    return (
        select(index_jobs.c.submission, documents.c.name, documents.c.folders)
        .select_from(imports)
        .join(index_jobs, _job_of_round())
        .join(documents, documents.c.id == imports.c.document_id)
        .outerjoin(reindexed, _built_round(beside.collection))
        .where(imports.c.state.in_(_IN_INDEX), reindexed.c.import_id.is_(None), beside.holds)
        .order_by(imports.c.id)
    )


def _job_of_round() -> ColumnElement[bool]:
    key = imports.c.id + ":" + cast(imports.c.round, String)
    return and_(index_jobs.c.key == key, index_jobs.c.state == IndexJobState.DONE)


def _built_round(collection: str) -> ColumnElement[bool]:
    return and_(reindexed.c.collection == collection, _IMPORT_BUILT)

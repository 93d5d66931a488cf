"""Files of one connection for people: filtered, in the order of names, a page at a time.

A page is found by the name it begins after, so the last page of 100,000 files costs what the first
one does.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, func, or_, select

from drivefeed.catalog.listing import ListedFile, listed_file, paths_in
from drivefeed.catalog.progress import STANDING, WHY, Standing
from drivefeed.catalog.sources import connection_in
from drivefeed.catalog.tables import connections, coverage, documents, imports, items
from drivefeed.domain.errors import NotFound
from drivefeed.domain.explanations import EXPLANATIONS, Kind
from drivefeed.domain.lifecycle import State

if TYPE_CHECKING:
    from collections.abc import Collection

    from sqlalchemy import ColumnElement
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection

_FEW: Final = 500
"""So many candidates are asked for by id; with more, walking along the names meets them soon."""
_REASONS_OF_FEW: Final = frozenset(
    reason.value
    for reason, words in EXPLANATIONS.items()
    if words.kind in {Kind.REJECTED, Kind.ATTENTION, Kind.HOLD}
)
_NAME = func.lower(items.c.name)


class BadCursor(ValueError):
    """The text is no place in a list that we ever gave out."""


@dataclass(frozen=True, slots=True)
class Filter:
    """Which files of a connection are wanted; None for any.

    Attributes:
        standing: where they stand.
        state: the state of the import that should be searchable.
        reason: why they stand there: a reason code, or the state.
        text: letters in their name, whatever the case.
    """

    standing: Standing | None = None
    state: State | None = None
    reason: str | None = None
    text: str | None = None


@dataclass(frozen=True, slots=True)
class FilesPage:
    """Some files in the order of names.

    Attributes:
        next: where the next page begins; None where this is the last one.
    """

    files: tuple[ListedFile, ...]
    next: str | None


async def org_connection(catalog: Catalog, org_id: str, connection_id: str) -> Connection:
    """Return a connection of an org.

    Raises:
        NotFound: the org has no such connection.
    """
    async with catalog.read() as connection:
        return await _org_connection(connection, org_id, connection_id)


async def page_of_files(
    catalog: Catalog,
    org_id: str,
    connection_id: str,
    *,
    only: Filter,
    after: str | None = None,
    limit: int = 50,
) -> FilesPage:
    """Return files of a connection of an org.

    Args:
        after: what an earlier page gave as ``next``.

    Raises:
        NotFound: the org has no such connection.
        BadCursor: ``after`` is nothing that a page gave.
    """
    async with catalog.read() as connection:
        one = await _org_connection(connection, org_id, connection_id)
        where = _conditions(only)
        if after is not None:
            where.append(_behind(after))
        few = await _candidates(connection, org_id, only)
        if few is not None:
            where.append(items.c.item_id.in_(few))
        rows = await connection.execute(
            select(
                coverage.c.connection_id,
                coverage.c.item_id,
                _NAME.label("sorted_name"),
                STANDING.label("standing"),
                WHY.label("why"),
                documents.c.id.label("document_id"),
                documents.c.live_import_id,
                imports.c.id.label("import_id"),
                imports.c.state,
                imports.c.round,
                imports.c.size,
                imports.c.pages,
                imports.c.chunks,
                imports.c.detail,
            )
            .select_from(
                items.join(
                    coverage,
                    and_(
                        coverage.c.item_id == items.c.item_id,
                        coverage.c.connection_id == connection_id,
                    ),
                )
                .outerjoin(documents, documents.c.id == coverage.c.document_id)
                .outerjoin(imports, imports.c.id == documents.c.wanted_import_id)
            )
            .where(items.c.drive_id == one.drive_id, *where)
            .order_by(_NAME, items.c.item_id)
            .limit(limit + 1)
        )
        found = rows.mappings().all()
        shown = found[:limit]
        pairs = [(connection_id, row["item_id"]) for row in shown]
        paths = await paths_in(connection, {connection_id: one}, pairs)
    more = len(found) > limit
    return FilesPage(
        tuple(listed_file(row, paths) for row in shown),
        _cursor(shown[-1]["sorted_name"], shown[-1]["item_id"]) if more else None,
    )


async def addresses_of(
    catalog: Catalog, org_id: str, document_ids: Collection[str]
) -> dict[str, tuple[str, str]]:
    """Return of documents of an org where their passports are: (connection, item)."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(coverage.c.document_id, coverage.c.connection_id, coverage.c.item_id)
            .join(connections, connections.c.id == coverage.c.connection_id)
            .where(
                coverage.c.document_id.in_(list(document_ids)[:_FEW]),
                connections.c.org_id == org_id,
            )
        )
        return {row.document_id: (row.connection_id, row.item_id) for row in rows}


async def _org_connection(
    connection: AsyncConnection, org_id: str, connection_id: str
) -> Connection:
    found = await connection_in(connection, connection_id)
    if found is None or found.org_id != org_id:
        raise NotFound("There is no such connection.")
    return found


def _conditions(only: Filter) -> list[ColumnElement[bool]]:
    where: list[ColumnElement[bool]] = []
    if only.standing is not None:
        where.append(STANDING.is_not_distinct_from(only.standing.value))
    if only.state is not None:
        where.append(imports.c.state == only.state)
    if only.reason is not None:
        where.append(WHY.is_not_distinct_from(only.reason))
    if only.text:
        # SQLite lowers the letters of ASCII alone.
        where.append(
            or_(
                _NAME.contains(only.text.lower(), autoescape=True),
                items.c.name.contains(only.text, autoescape=True),
            )
        )
    return where


async def _candidates(connection: AsyncConnection, org_id: str, only: Filter) -> list[str] | None:
    """Return the items among which all that are wanted are; None where they are too many."""
    failed = or_(imports.c.state == State.REJECTED, imports.c.attention.is_not(None))
    held = imports.c.hold.is_not(None)
    if only.standing is Standing.FAILED:
        rare = failed
    elif only.standing is Standing.HELD:
        rare = held
    elif only.reason in _REASONS_OF_FEW:
        rare = or_(failed, held)
    else:
        return None
    rows = await connection.execute(
        select(documents.c.item_id)
        .join(imports, imports.c.document_id == documents.c.id)
        .where(imports.c.org_id == org_id, documents.c.item_id.is_not(None), rare)
        .limit(_FEW + 1)
    )
    found = [str(key) for key in rows.scalars()]
    return found if len(found) <= _FEW else None


def _cursor(name: str, item_id: str) -> str:
    words = json.dumps([name, item_id], ensure_ascii=False).encode()
    return urlsafe_b64encode(words).decode().rstrip("=")


def _behind(cursor: str) -> ColumnElement[bool]:
    name, item_id = _place(cursor)
    # The first condition says nothing new, but is one that an index can begin at.
    return and_(name <= _NAME, or_(name < _NAME, items.c.item_id > item_id))


def _place(cursor: str) -> tuple[str, str]:
    try:
        place: Any = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError:
        place = None
    match place:
        case [str(name), str(item_id)]:
            return name, item_id
    raise BadCursor("The list cannot be continued from there.")

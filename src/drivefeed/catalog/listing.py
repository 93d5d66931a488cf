"""Lists of files with their standing, paths of documents, and which rounds are live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select

from drivefeed.catalog.dialect import batches
from drivefeed.catalog.progress import FILES, STANDING, WHY
from drivefeed.catalog.sources import connection_of
from drivefeed.catalog.tables import connections, coverage, documents, imports, orgs
from drivefeed.catalog.tree import known_items, lineages
from drivefeed.domain.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.tree_lines import Lineage
    from drivefeed.domain.delta import TreeItem
    from drivefeed.domain.model import Connection


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A file of a connection: where it lies, where it stands, and why.

    Attributes:
        why: a reason code, or the stage it is in.
        live: whether any version of it is searchable.
    """

    connection_id: str
    item_id: str
    path: str
    standing: str
    why: str
    detail: str
    document_id: str | None
    import_id: str | None
    state: str | None
    round: int | None
    size: int | None
    pages: int | None
    chunks: int | None
    live: bool


def relative_path(item: TreeItem, line: Lineage, root_id: str) -> str:
    """Return an item's path below a connected folder; names joined with ``/``."""
    below = line.below(root_id)
    folders = below if below is not None else line.folders[1:]
    return "/".join([*(folder.name for folder in folders), item.name])


async def list_files(
    catalog: Catalog,
    *,
    standing: str | None = None,
    state: str | None = None,
    reason: str | None = None,
    limit: int = 10_000,
) -> list[ListedFile]:
    """List files of all connections, by path.

    Args:
        standing: only files that stand there.
        state: only files whose wanted import is in this state.
        reason: only files with this reason.
    """
    where = []
    if standing is not None:
        where.append(STANDING.is_not_distinct_from(standing))
    if state is not None:
        where.append(imports.c.state == state)
    if reason is not None:
        where.append(WHY.is_not_distinct_from(reason))
    statement = (
        select(
            coverage.c.connection_id,
            coverage.c.item_id,
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
        .select_from(FILES)
        .where(*where)
        .limit(limit)
    )
    async with catalog.read() as connection:
        rows = (await connection.execute(statement)).mappings().all()
        known = await _connections(connection)
        paths = await paths_in(
            connection, known, [(row["connection_id"], row["item_id"]) for row in rows]
        )
    return sorted((listed_file(row, paths) for row in rows), key=lambda one: one.path)


def listed_file(row: RowMapping, paths: Mapping[tuple[str, str], str]) -> ListedFile:
    """Read a row of the columns that lists select."""
    return ListedFile(
        connection_id=row["connection_id"],
        item_id=row["item_id"],
        path=paths[(row["connection_id"], row["item_id"])],
        standing=row["standing"],
        why=str(row["why"] or "unknown"),
        detail=row["detail"] or "",
        document_id=row["document_id"],
        import_id=row["import_id"],
        state=row["state"],
        round=row["round"],
        size=row["size"],
        pages=row["pages"],
        chunks=row["chunks"],
        live=row["live_import_id"] is not None,
    )


async def _connections(connection: AsyncConnection) -> dict[str, Connection]:
    rows = await connection.execute(select(connections))
    return {row["id"]: connection_of(row) for row in rows.mappings()}


async def paths_of(
    catalog: Catalog, connection_id: str, item_ids: Collection[str]
) -> dict[str, str]:
    """Return the paths of items below a connected folder, by item id."""
    async with catalog.read() as connection:
        known = await _connections(connection)
        found = await paths_in(connection, known, [(connection_id, one) for one in item_ids])
    return {item_id: path for (_, item_id), path in found.items()}


async def paths_in(
    connection: AsyncConnection,
    known: dict[str, Connection],
    wanted: Iterable[tuple[str, str]],
) -> dict[tuple[str, str], str]:
    """Return the paths of (connection, item) pairs, each below its connected folder.

    Args:
        known: connections by id, those of the pairs among them.
    """
    by_drive: dict[str, set[str]] = {}
    pairs = list(wanted)
    for connection_id, item_id in pairs:
        by_drive.setdefault(known[connection_id].drive_id, set()).add(item_id)
    items: dict[tuple[str, str], TreeItem] = {}
    lines: dict[tuple[str, str], Lineage] = {}
    for drive_id, ids in by_drive.items():
        found = await known_items(connection, drive_id, ids)
        climbed = await lineages(connection, drive_id, found.values())
        items |= {(drive_id, key): one for key, one in found.items()}
        lines |= {(drive_id, key): line for key, line in climbed.items()}
    paths: dict[tuple[str, str], str] = {}
    for connection_id, item_id in pairs:
        each = known[connection_id]
        key = (each.drive_id, item_id)
        paths[(connection_id, item_id)] = (
            relative_path(items[key], lines[key], each.root_item_id) if key in items else item_id
        )
    return paths


@dataclass(frozen=True, slots=True)
class DocumentPlace:
    """Where a document is for people: its path in a connection, and its address at the source."""

    document_id: str
    path: str
    web_url: str | None


async def places_of(
    catalog: Catalog, org_id: str, document_ids: Collection[str]
) -> dict[str, DocumentPlace]:
    """Return paths of documents as they are now; the index knows none."""
    places: dict[str, DocumentPlace] = {}
    async with catalog.read() as connection:
        known = await _connections(connection)
        for batch in batches(document_ids):
            rows = await connection.execute(
                select(coverage.c.connection_id, coverage.c.item_id, coverage.c.document_id)
                .join(documents, documents.c.id == coverage.c.document_id)
                .where(coverage.c.document_id.in_(batch), documents.c.org_id == org_id)
            )
            pairs = {(row.connection_id, row.item_id): row.document_id for row in rows}
            paths = await paths_in(connection, known, pairs)
            for key, path in paths.items():
                items = await known_items(connection, known[key[0]].drive_id, [key[1]])
                url = items[key[1]].web_url if key[1] in items else None
                places[pairs[key]] = DocumentPlace(pairs[key], path, url)
    return places


async def live_rounds(
    catalog: Catalog, org_id: str, document_ids: Collection[str]
) -> set[tuple[str, int]]:
    """Return the (import, round) that is live of each of the documents."""
    live: set[tuple[str, int]] = set()
    async with catalog.read() as connection:
        for batch in batches(document_ids):
            rows = await connection.execute(
                select(documents.c.live_import_id, documents.c.live_round).where(
                    documents.c.id.in_(batch),
                    documents.c.org_id == org_id,
                    documents.c.live_import_id.is_not(None),
                )
            )
            live.update((row.live_import_id, row.live_round) for row in rows)
    return live


async def has_live(catalog: Catalog, org_id: str | None = None) -> bool:
    """Whether search shows any document of an organization, or of any."""
    live = select(documents.c.id).where(documents.c.live_import_id.is_not(None)).limit(1)
    if org_id is not None:
        live = live.where(documents.c.org_id == org_id)
    async with catalog.read() as connection:
        return (await connection.execute(live)).first() is not None


async def org_named(catalog: Catalog, name: str | None) -> str:
    """Return the id of an organization; with only one in the catalog, its name may be left out.

    Raises:
        NotFound: there is no such organization, or there are several and none was named.
    """
    async with catalog.read() as connection:
        statement = select(orgs.c.id)
        if name is not None:
            statement = statement.where(orgs.c.name == name)
        found = list((await connection.execute(statement)).scalars())
    if len(found) == 1:
        return str(found[0])
    if name is not None:
        raise NotFound(f"There is no organization called '{name}'.")
    if not found:
        raise NotFound("Nothing was imported yet: no folder is connected.")
    raise NotFound("There are several organizations; name one with --org.")

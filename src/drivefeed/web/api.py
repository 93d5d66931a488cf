"""JSON under ``/v1``, at the addresses that the pages have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Request

from drivefeed.catalog.browsing import addresses_of, org_connection
from drivefeed.catalog.collections import in_use
from drivefeed.catalog.passport import passport_in
from drivefeed.web.described import PROBLEMS, bearer
from drivefeed.web.index_shape import IndexShape, index_shape
from drivefeed.web.passport_shapes import PassportShape, passport_shape
from drivefeed.web.problems import not_found
from drivefeed.web.queries import MOST_HITS, WantedFiles, Words, asked_files, no_search
from drivefeed.web.shapes import (
    ConnectionShape,
    FilesShape,
    HitsShape,
    OverviewShape,
    connection_shape,
    hits_shape,
    overview_shape,
)
from drivefeed.web.site import Site, site_of
from drivefeed.web.visitors import Visitor  # noqa: TC001 - FastAPI reads the annotations

if TYPE_CHECKING:
    from drivefeed.catalog.api_keys import ApiKey

router = APIRouter(
    prefix="/v1",
    tags=["status"],
    responses=PROBLEMS,
    dependencies=[bearer()],
)


@router.get("/")
async def overview(request: Request, key: Visitor) -> OverviewShape:
    """Return how the organization stands: what keeps files back, and each connection."""
    return overview_shape(key, await site_of(request).watch.view(key.org_id))


@router.get("/connections/{connection_id}")
async def connection(request: Request, key: Visitor, connection_id: str) -> ConnectionShape:
    """Return where the files of a connection stand."""
    return await connection_of_view(site_of(request), key, connection_id)


@router.get("/connections/{connection_id}/files")
async def files(
    request: Request, key: Visitor, connection_id: str, query: WantedFiles
) -> FilesShape:
    """List files of a connection in the order of their names, a page at a time."""
    return await asked_files(site_of(request), key, connection_id, query)


@router.get("/connections/{connection_id}/files/{item_id}")
async def passport(
    request: Request, key: Visitor, connection_id: str, item_id: str
) -> PassportShape:
    """Tell the whole story of a file: each version, each step, each reason."""
    found = await passport_in(site_of(request).catalog, key.org_id, connection_id, item_id)
    return passport_shape(found)


@router.get("/search")
async def search(request: Request, key: Visitor, q: Words = "") -> HitsShape:
    """Find documents by words and by meaning; needs a running daemon."""
    return await hits_of(site_of(request), key, q)


@router.get("/index")
async def index(request: Request, key: Visitor) -> IndexShape:
    """Tell in which collection of the vector index the organization's documents are now.

    A reindex changes it; an application that asks the index itself looks here every minute.
    """
    site = site_of(request)
    made = await in_use(site.catalog, site.index, key.org_id)
    if made is None:
        raise not_found("Nothing is indexed yet.")
    return index_shape(site.index, made)


async def connection_of_view(site: Site, key: ApiKey, connection_id: str) -> ConnectionShape:
    """Return how a connection of the key's org stands.

    Raises:
        NotFound, Problem: the org has no such connection.
    """
    await org_connection(site.catalog, key.org_id, connection_id)
    view = await site.watch.view(key.org_id)
    for one in view.progress:
        if one.connection.connection_id == connection_id:
            return connection_shape(one, view)
    raise not_found("The connection is new; its files are not counted yet.")


async def hits_of(site: Site, key: ApiKey, query: str) -> HitsShape:
    """Search what the org of a key imported.

    Raises:
        Problem: nothing that can search is running.
        PartDown: the index does not answer.
    """
    if not query.strip():
        return HitsShape(query=query, hits=[])
    if site.seek is None:
        raise no_search()
    hits = await site.seek(key.org_name, query, MOST_HITS)
    ids = {hit["document_id"] for hit in hits}
    return hits_shape(query, hits, await addresses_of(site.catalog, key.org_id, ids))

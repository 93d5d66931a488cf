"""The pages: what ``/v1`` answers, as HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse

from drivefeed.catalog.passport import passport_in
from drivefeed.catalog.progress import Standing
from drivefeed.domain.lifecycle import State
from drivefeed.web.api import connection_of_view, hits_of
from drivefeed.web.events import mark_of
from drivefeed.web.passport_shapes import passport_shape
from drivefeed.web.problems import Problem
from drivefeed.web.queries import FileQuery, WantedFiles, Words, asked_files
from drivefeed.web.shapes import FilesShape, overview_shape
from drivefeed.web.site import site_of
from drivefeed.web.visitors import Visitor  # noqa: TC001 - FastAPI reads the annotations

if TYPE_CHECKING:
    from drivefeed.catalog.api_keys import ApiKey

router = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)


@router.get("/")
async def overview(request: Request, key: Visitor) -> HTMLResponse:
    """Show what needs a person first, then all connections."""
    site = site_of(request)
    found = overview_shape(key, await site.watch.view(key.org_id))
    return _page(request, "overview.html", key, overview=found, events="/events")


@router.get("/connections/{connection_id}")
async def connection(
    request: Request, key: Visitor, connection_id: str, query: WantedFiles
) -> HTMLResponse:
    """Show a connection: its progress, its reasons, and its files."""
    return await _files(request, key, connection_id, query)


@router.get("/connections/{connection_id}/files")
async def files(
    request: Request, key: Visitor, connection_id: str, query: WantedFiles
) -> HTMLResponse:
    """Show the same; the address of the list under ``/v1``."""
    return await _files(request, key, connection_id, query)


@router.get("/connections/{connection_id}/files/{item_id}")
async def passport(
    request: Request, key: Visitor, connection_id: str, item_id: str
) -> HTMLResponse:
    """Show the passport of a file."""
    site = site_of(request)
    found = await passport_in(site.catalog, key.org_id, connection_id, item_id)
    one = await connection_of_view(site, key, connection_id)
    return _page(
        request,
        "passport.html",
        key,
        connection=one,
        passport=passport_shape(found),
        mark=mark_of(one),
        events=f"/events?connection={connection_id}",
    )


@router.get("/search")
async def search(request: Request, key: Visitor, q: Words = "") -> HTMLResponse:
    """Show what a search finds; a part that is down is told in place."""
    try:
        found = (await hits_of(site_of(request), key, q)).hits
        trouble = None
    except Problem as problem:
        found, trouble = [], problem
    status = trouble.status if trouble else 200
    return _page(request, "search.html", key, status=status, query=q, hits=found, trouble=trouble)


async def _files(
    request: Request, key: ApiKey, connection_id: str, query: FileQuery
) -> HTMLResponse:
    site = site_of(request)
    one = await connection_of_view(site, key, connection_id)
    # What the counts say is not there need not be looked for.
    if query.standing is not None and not query.after and not getattr(one, query.standing):
        page = FilesShape(files=[], next=None)
    else:
        page = await asked_files(site, key, connection_id, query)
    return _page(
        request,
        "connection.html",
        key,
        one=one,
        query=query,
        page=page,
        standings=list(Standing),
        states=list(State),
        mark=mark_of(one),
        events=f"/events?connection={connection_id}",
    )


def _page(
    request: Request, name: str, key: ApiKey, *, status: int = 200, **values: Any
) -> HTMLResponse:
    values.setdefault("events", None)
    html = site_of(request).render(name, key=key, path=request.url.path, **values)
    return HTMLResponse(html, status)

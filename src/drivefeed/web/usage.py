"""``/v1/usage``: how the pages of an organization stand, and the entries of its ledger."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, Field

from drivefeed.catalog.usage import Wanted, entries_after, usage_of
from drivefeed.web.described import PROBLEMS, bearer
from drivefeed.web.shapes import UsageShape, usage_shape
from drivefeed.web.site import site_of
from drivefeed.web.visitors import Visitor  # noqa: TC001 - FastAPI reads the annotations

router = APIRouter(prefix="/v1/usage", tags=["usage"], responses=PROBLEMS, dependencies=[bearer()])


class EntryShape(BaseModel):
    """An entry of the ledger; nothing in it is ever changed."""

    number: int
    at: int
    kind: str = Field(description="charge or correction.")
    pages: int
    overage: int = Field(description="Of the pages, those that were not held beforehand.")
    usage_owner: str = Field(description="backend where it is a copy of the backend's books.")
    connection_id: str | None
    connection: str | None
    document_id: str | None
    document: str | None
    import_id: str | None
    sha256: str | None
    corrects: int | None
    reason: str | None


class EntriesShape(BaseModel):
    """Entries in the order in which they were written."""

    entries: list[EntryShape]
    next: int | None = Field(description="Give it as 'after' for the next page; null at the end.")


class EntryQuery(BaseModel):
    """Which entries are asked for, and from where on."""

    connection: str = Field("", max_length=64, description="The id of a connection.")
    document: str = Field("", max_length=64, description="The id of a document.")
    begin: int | None = Field(None, description="Entries from this instant on.")
    end: int | None = Field(None, description="Entries before this instant.")
    after: int = Field(0, ge=0, description="'next' of the page before.")
    limit: int = Field(200, ge=1, le=1_000, description="At most so many.")


@router.get("")
async def usage(request: Request, key: Visitor) -> UsageShape:
    """Return how the pages of the organization stand."""
    (one,) = await usage_of(site_of(request).catalog, key.org_id)
    return usage_shape(one)


@router.get("/entries")
async def entries(
    request: Request, key: Visitor, query: Annotated[EntryQuery, Query()]
) -> EntriesShape:
    """List entries of the organization's ledger, a page at a time."""
    wanted = Wanted(
        key.org_id, query.connection or None, query.document or None, query.begin, query.end
    )
    found = await entries_after(site_of(request).catalog, wanted, query.after, limit=query.limit)
    names = EntryShape.model_fields
    shapes = [
        EntryShape(**{name: value for name, value in asdict(one).items() if name in names})
        for one in found
    ]
    return EntriesShape(
        entries=shapes, next=found[-1].number if len(found) == query.limit else None
    )

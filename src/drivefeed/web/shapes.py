"""The answers of ``/v1``, which the pages show too: one shape each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from drivefeed.domain.words import meaning_of, remedy_of
from drivefeed.services.budget_words import budget_dict
from drivefeed.services.standings import progress_dict, troubles_of
from drivefeed.services.usage_words import usage_dict, usage_sentence

if TYPE_CHECKING:
    from drivefeed.catalog.api_keys import ApiKey
    from drivefeed.catalog.browsing import FilesPage
    from drivefeed.catalog.listing import ListedFile
    from drivefeed.catalog.progress import Progress
    from drivefeed.catalog.usage import Usage
    from drivefeed.web.watch import View


class ReasonShape(BaseModel):
    """How many files stand somewhere for a reason."""

    standing: str
    reason: str = Field(description="A reason code, or the state of the import.")
    files: int
    meaning: str
    remedy: str


class TroubleShape(BaseModel):
    """Something that keeps files from becoming searchable, the worst first."""

    connection_id: str
    connection: str
    standing: str | None = Field(description="Null where it is about the whole connection.")
    reason: str
    files: int
    needs_person: bool
    meaning: str
    remedy: str
    detail: str


class ConnectionShape(BaseModel):
    """A connected folder and where its files stand."""

    connection_id: str
    name: str
    drive: str
    paused: bool
    attention: str | None
    hold: str | None
    detail: str | None
    listed: bool = Field(description="Whether the folder was listed whole, so that found is final.")
    at_rest: bool
    found: int
    percent: int = Field(description="Files at an end, of those planned or found.")
    planned: int | None = Field(description="Files that its plan counted, if it had one.")
    since: int = Field(description="Files that came on top of the planned ones.")
    pages: int
    searchable: int
    in_progress: int
    stale: int = Field(description="An older version is searchable while the newest is under way.")
    held: int
    failed: int
    skipped: int
    files_a_second: float | None
    seconds_left: int | None
    latest_event: int = Field(description="Rises when something happens to a file; 0 when quiet.")
    reasons: list[ReasonShape]


class UsageShape(BaseModel):
    """How the pages of an organization stand; times are milliseconds since the epoch."""

    org: str
    limit: int | None = Field(description="Null where there is no limit.")
    used: int = Field(description="Pages charged in the period, corrections included.")
    held: int = Field(description="Pages that files under way hold.")
    free: int | None
    over: int = Field(description="Pages used beyond the limit.")
    percent: int | None
    files_waiting: int = Field(description="Files that wait until pages are free.")
    period: str = Field(description="total, month or day.")
    time_zone: str
    since: int
    resets_at: int | None
    total: int = Field(description="Pages ever charged.")
    copied: dict[str, int] = Field(
        description="Pages in the books of backends that keep them themselves, by backend; they "
        "count nowhere here."
    )
    words: str


class LanesShape(BaseModel):
    """Requests that wait for their turn, the most urgent first."""

    changes: int
    retries: int
    backfill: int
    verify: int


class BudgetShape(BaseModel):
    """What an app may ask Microsoft for in a tenant, in Microsoft's resource units."""

    accounts: list[str] = Field(description="Names of the accounts that spend from it.")
    tenant_id: str
    client_id: str
    used_minute: int
    per_minute: int = Field(description="What we allow ourselves of Microsoft's limit.")
    used_day: int
    per_day: int
    closed_seconds: float = Field(description="For how long Microsoft wants to be left alone.")
    throttled_seconds: float = Field(description="For how long every request has been refused.")
    waiting: LanesShape
    is_shared: bool = Field(description="Whether all processes share it at the moment.")
    words: str


class OverviewShape(BaseModel):
    """How an organization stands."""

    org: str
    pages_used: int = Field(description="Pages ever charged.")
    usage: UsageShape
    budgets: list[BudgetShape]
    troubles: list[TroubleShape]
    connections: list[ConnectionShape]


class FileShape(BaseModel):
    """A file of a connection: where it stands and why."""

    connection_id: str
    item_id: str
    path: str
    standing: str
    reason: str
    meaning: str
    remedy: str
    detail: str
    state: str | None
    round: int | None
    size: int | None = Field(description="Bytes, once it was copied.")
    pages: int | None
    chunks: int | None
    searchable: bool = Field(description="Whether any version of it is.")


class FilesShape(BaseModel):
    """Files in the order of names."""

    files: list[FileShape]
    next: str | None = Field(description="Give it as 'after' for the next page; null at the end.")


class HitShape(BaseModel):
    """A document that answers a search."""

    path: str
    page: int
    snippet: str
    highlights: list[tuple[int, int]]
    score: float
    document_id: str
    connection_id: str | None
    item_id: str | None
    web_url: str | None


class HitsShape(BaseModel):
    """What a search found."""

    query: str
    hits: list[HitShape]


class ProblemShape(BaseModel):
    """RFC 9457, with a reason that stays the same and what to do."""

    type: str
    title: str
    status: int
    detail: str
    reason: str
    remedy: str
    errors: list[dict[str, str]] | None = None


def connection_shape(one: Progress, view: View) -> ConnectionShape:
    """Return how a connection stands in a view."""
    recent = view.lately.get(one.connection.connection_id)
    members = progress_dict(one)
    if one.connection.paused or not one.waiting:
        members["seconds_left"] = None
    return ConnectionShape(
        **members,
        files_a_second=recent.files_a_second if recent else None,
        latest_event=recent.latest if recent else 0,
    )


def trouble_shapes(found: tuple[Progress, ...]) -> list[TroubleShape]:
    """Return what keeps files of all connections back; what asks for a person comes first."""
    shapes = [
        TroubleShape(
            connection_id=one.connection.connection_id,
            connection=one.connection.name,
            standing=trouble.standing.value if trouble.standing else None,
            reason=trouble.code,
            files=trouble.files,
            needs_person=trouble.asks,
            meaning=trouble.meaning,
            remedy=trouble.remedy,
            detail=trouble.detail,
        )
        for one in found
        for trouble in troubles_of(one)
    ]
    return sorted(shapes, key=lambda one: (not one.needs_person, one.standing is not None))


def usage_shape(one: Usage) -> UsageShape:
    """Return how the pages of an organization stand."""
    values = usage_dict(one)
    del values["org_id"]
    return UsageShape(**values, words=usage_sentence(one))


def overview_shape(key: ApiKey, view: View) -> OverviewShape:
    """Return how the org of a key stands."""
    return OverviewShape(
        org=key.org_name,
        pages_used=view.usage.total,
        usage=usage_shape(view.usage),
        budgets=[BudgetShape(**budget_dict(one)) for one in view.budgets],
        troubles=trouble_shapes(view.progress),
        connections=[connection_shape(one, view) for one in view.progress],
    )


def files_shape(page: FilesPage) -> FilesShape:
    """Return a page of files."""
    return FilesShape(files=[_file_shape(one) for one in page.files], next=page.next)


def _file_shape(one: ListedFile) -> FileShape:
    return FileShape(
        connection_id=one.connection_id,
        item_id=one.item_id,
        path=one.path,
        standing=one.standing,
        reason=one.why,
        meaning=meaning_of(one.why),
        remedy=remedy_of(one.why),
        detail=one.detail,
        state=one.state,
        round=one.round,
        size=one.size,
        pages=one.pages,
        chunks=one.chunks,
        searchable=one.live,
    )


def hits_shape(
    query: str, hits: list[dict[str, Any]], addresses: dict[str, tuple[str, str]]
) -> HitsShape:
    """Return what a search found, each with the address of its passport."""
    shapes = []
    for hit in hits:
        connection_id, item_id = addresses.get(hit["document_id"], (None, None))
        shapes.append(HitShape(**hit, connection_id=connection_id, item_id=item_id))
    return HitsShape(query=query, hits=shapes)

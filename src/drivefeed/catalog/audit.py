"""What the catalog believes about source, store and index, for the sync certificate."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import and_, func, select

from drivefeed.catalog.ledger import CHARGE
from drivefeed.catalog.tables import (
    documents,
    import_events,
    imports,
    index_jobs,
    reminders,
)
from drivefeed.catalog.usage_tables import ledger
from drivefeed.domain.identity import object_key
from drivefeed.domain.lifecycle import State
from drivefeed.domain.policy_options import EMBEDDED
from drivefeed.ports import IndexJobState

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog

_PAGE = 2_000


@dataclass(frozen=True, slots=True)
class Version:
    """An import, and what the catalog says of its document and of what is due for it.

    Attributes:
        object_key: where the bytes of its round are.
        chunks: how many points it has; None while it is not settled.
        wanted: whether its document wants it.
        live: whether it is what search shows.
        shown: what the index was last told to show of it; None where that is not known.
        indexed_here: whether its points are in our own index; not those of other backends.
        waits: whether a person is asked, or a condition waited for.
        due: the stage that is due for it, now or later; None for none.
    """

    import_id: str
    document_id: str
    round: int
    state: State
    object_key: str
    size: int | None
    sha256: str | None
    chunks: int | None
    wanted: bool
    live: bool
    waits: bool
    due: str | None
    indexed_here: bool = True
    shown: bool | None = None

    @property
    def name(self) -> str:
        """What it is called in a finding."""
        return f"import {self.import_id} round {self.round}"


@dataclass(frozen=True, slots=True)
class Charge:
    """An entry of the ledger that charges a version."""

    document_id: str
    import_id: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Books:
    """All that the catalog says about effects, read at one time.

    Attributes:
        hidden: documents whose live version is not an import that is known: by id, what they name.
        dangling: the same of what they want.
        submissions: how many jobs of the embedded backend are done or to be done, by key.
    """

    versions: list[Version]
    hidden: dict[str, str]
    charges: list[Charge]
    submissions: dict[str, int]
    dangling: dict[str, str] = field(default_factory=dict)


async def latest_event(catalog: Catalog) -> int:
    """Return the number of the event that was recorded last; 0 where there is none."""
    async with catalog.read() as connection:
        return await connection.scalar(select(func.max(import_events.c.id))) or 0


async def moved_since(catalog: Catalog, number: int) -> frozenset[str]:
    """Return the ids of imports of which events with a higher number were recorded."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(import_events.c.import_id).where(import_events.c.id > number).distinct()
        )
        return frozenset(rows.scalars())


async def read_books(catalog: Catalog) -> Books:
    """Read the books in one transaction."""
    async with catalog.read() as connection:
        versions = [one async for one in _versions(connection)]
        entries = await connection.execute(
            select(ledger.c.document_id, ledger.c.import_id, ledger.c.sha256)
            .where(ledger.c.kind == CHARGE)
            .order_by(ledger.c.id)
        )
        charges = [Charge(*row) for row in entries]
        jobs = await connection.execute(
            select(index_jobs.c.key, func.count())
            .where(index_jobs.c.state.in_([IndexJobState.QUEUED, IndexJobState.DONE]))
            .group_by(index_jobs.c.key)
        )
        lost = await connection.execute(
            select(documents.c.id, documents.c.live_import_id).where(
                documents.c.live_import_id.is_not(None),
                documents.c.live_import_id.not_in(
                    select(imports.c.id).where(imports.c.state == State.SETTLED)
                ),
            )
        )
        unknown = await connection.execute(
            select(documents.c.id, documents.c.wanted_import_id).where(
                documents.c.wanted_import_id.is_not(None),
                documents.c.wanted_import_id.not_in(select(imports.c.id)),
            )
        )
        return Books(
            versions=versions,
            dangling={str(key): str(named) for key, named in unknown},
            hidden={str(key): str(named) for key, named in lost},
            charges=charges,
            submissions={str(key): int(count) for key, count in jobs},
        )


async def versions(catalog: Catalog) -> AsyncIterator[Version]:
    """Yield every import that is not withdrawn, by id, in one view of the database."""
    async with catalog.read() as connection:
        async for one in _versions(connection):
            if one.state is not State.WITHDRAWN:
                yield one


async def _versions(connection: AsyncConnection) -> AsyncIterator[Version]:
    after = ""
    while True:
        rows = await connection.execute(
            select(
                imports,
                documents.c.wanted_import_id,
                documents.c.live_import_id,
                documents.c.live_round,
                reminders.c.stage.label("due"),
            )
            .join(documents, documents.c.id == imports.c.document_id)
            .outerjoin(
                reminders,
                and_(reminders.c.subject_id == imports.c.id, reminders.c.due_at.is_not(None)),
            )
            .where(imports.c.id > after)
            .order_by(imports.c.id)
            .limit(_PAGE)
        )
        found = rows.mappings().all()
        for row in found:
            yield _version(row)
        if len(found) < _PAGE:
            return
        after = str(found[-1]["id"])


def _version(row: RowMapping) -> Version:
    return Version(
        import_id=row["id"],
        document_id=row["document_id"],
        round=row["round"],
        state=State(row["state"]),
        object_key=object_key(row["org_id"], row["document_id"], row["id"], row["round"]),
        size=row["size"],
        sha256=row["sha256"],
        indexed_here=row["backend"] in {None, EMBEDDED},
        chunks=row["chunks"],
        wanted=row["wanted_import_id"] == row["id"],
        live=(row["live_import_id"], row["live_round"]) == (row["id"], row["round"]),
        waits=row["attention"] is not None or row["hold"] is not None,
        due=row["due"],
        shown=row["shown"],
    )

"""Documents and their imports as rows, and convergence inside a transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, select, update
from sqlalchemy import insert as plain_insert

from drivefeed.catalog import reminders
from drivefeed.catalog.dialect import batches
from drivefeed.catalog.passport_lines import event_row
from drivefeed.catalog.quota import release_unless_needed
from drivefeed.catalog.tables import documents, import_events, imports
from drivefeed.domain.converge import converge, relieved
from drivefeed.domain.lifecycle import State
from drivefeed.domain.model import Document, Import, Live
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Unpack

    from sqlalchemy import RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.passport_lines import Told
    from drivefeed.domain.converge import Due
    from drivefeed.domain.lifecycle import Event

PAYLOAD_SCHEMA = 1

# Every step of every file runs these, and a statement takes longer to put together than to run.
_DOCUMENT_OF_IMPORT = select(documents).where(
    documents.c.id
    == select(imports.c.document_id).where(imports.c.id == bindparam("of")).scalar_subquery()
)
_LOCKED_DOCUMENT = _DOCUMENT_OF_IMPORT.with_for_update()
_LOCK_AROUND = _DOCUMENT_OF_IMPORT.with_only_columns(documents.c.id).with_for_update()
_IMPORTS_OF_DOCUMENT = select(imports).where(imports.c.document_id == bindparam("of"))
_SAVE_IMPORT = update(imports).where(imports.c.id == bindparam("of"))
_SAVE_DOCUMENT = update(documents).where(documents.c.id == bindparam("of"))
_RECORD_EVENT = plain_insert(import_events)


def reason_of(code: str | None) -> Reason | None:
    """Read a stored reason code."""
    return Reason(code) if code else None


def document_of(row: RowMapping | Mapping[str, Any]) -> Document:
    """Read a row of ``documents``."""
    live = row["live_import_id"]
    return Document(
        document_id=row["id"],
        org_id=row["org_id"],
        wanted=row["wanted_import_id"],
        live=Live(live, row["live_round"]) if live else None,
        seq=row["seq"],
        unwanted_reason=reason_of(row["unwanted_reason"]),
        erase_at=row["erase_at"],
        misplaced=row["misplaced"],
    )


def import_of(row: RowMapping | Mapping[str, Any]) -> Import:
    """Read a row of ``imports``."""
    return Import(
        import_id=row["id"],
        document_id=row["document_id"],
        org_id=row["org_id"],
        version_key=row["version_key"],
        state=State(row["state"]),
        round=row["round"],
        revision=row["revision"],
        reason=reason_of(row["reason"]),
        shown=row["shown"],
        attention=reason_of(row["attention"]),
        hold=reason_of(row["hold"]),
        backend=row["backend"],
        backend_job=row["backend_job"],
        deadline_at=row["deadline_at"],
        poll_count=row["poll_count"],
        quick_xor=row["quick_xor"],
        misplaced=row["misplaced"],
        size=row["size"],
        sha256=row["sha256"],
        integrity=row["integrity"],
        pages=row["pages"],
        chunks=row["chunks"],
    )


def import_columns(one: Import) -> dict[str, Any]:
    """Return the columns of ``imports`` that an import's value decides."""
    return {
        "state": one.state,
        "round": one.round,
        "revision": one.revision,
        "reason": one.reason,
        "shown": one.shown,
        "attention": one.attention,
        "hold": one.hold,
        "backend": one.backend,
        "backend_job": one.backend_job,
        "deadline_at": one.deadline_at,
        "poll_count": one.poll_count,
        "misplaced": one.misplaced,
        "size": one.size,
        "sha256": one.sha256,
        "integrity": one.integrity,
        "pages": one.pages,
        "chunks": one.chunks,
    }


async def load(
    connection: AsyncConnection, ids: Collection[str], *, lock: bool = False
) -> dict[str, tuple[Document, dict[str, Import]]]:
    """Load documents with all their imports, in two queries for each few hundred.

    Args:
        lock: whether they and their imports stay so until the commit.
    """
    found: dict[str, tuple[Document, dict[str, Import]]] = {}
    for batch in batches(sorted(ids)):
        wanted = select(documents).where(documents.c.id.in_(batch)).order_by(documents.c.id)
        rows = await connection.execute(wanted.with_for_update() if lock else wanted)
        for row in rows.mappings():
            found[row["id"]] = (document_of(row), {})
        rows = await connection.execute(select(imports).where(imports.c.document_id.in_(batch)))
        for row in rows.mappings():
            one = import_of(row)
            found[one.document_id][1][one.import_id] = one
    return found


async def lock_around(connection: AsyncConnection, import_id: str) -> None:
    """Keep the document of an import, and all its imports, as they are until the commit."""
    await connection.execute(_LOCK_AROUND, {"of": import_id})


async def load_around(
    connection: AsyncConnection, import_id: str
) -> tuple[Document, dict[str, Import]] | None:
    """Load the document of an import with all its imports; None if there is no such import.

    They stay so until the commit.
    """
    rows = await connection.execute(_LOCKED_DOCUMENT, {"of": import_id})
    row = rows.mappings().one_or_none()
    if row is None:
        return None
    known = await connection.execute(_IMPORTS_OF_DOCUMENT, {"of": row["id"]})
    return document_of(row), {each["id"]: import_of(each) for each in known.mappings()}


async def settle_into(
    connection: AsyncConnection,
    before: Document,
    document: Document,
    known: dict[str, Import],
    *,
    now: int,
    moved: Collection[str] = (),
    lane: int = reminders.LANE_BACKFILL,
) -> tuple[Document, dict[str, Import]]:
    """Converge a document and write what follows: its row, its imports, their reminders.

    Args:
        before: the document as its row still says.
        document: the document as it should be, before convergence.
        known: all its imports, those that this transaction changed already written.
        moved: imports that this transaction changed, whose reminder must be written anew.
    """
    changed_mind = document.wanted != before.wanted
    # What a person was asked, or waited for, belongs to the mind that was changed.
    calm = {key: relieved(one) for key, one in known.items()} if changed_mind else known
    outcome = converge(document, calm.values(), now=now)
    for move in outcome.moves:
        await record_event(connection, move.after, move.event, now=now, reason=move.after.reason)
    for key, one in outcome.imports.items():
        if one != known[key]:
            await save_import(connection, one)
    if outcome.document != before:
        await save_document(connection, outcome.document)
    anew = {*moved, *(move.after.import_id for move in outcome.moves)}
    for key, step in outcome.due.items():
        is_anew = changed_mind or key in anew
        await _remind(connection, outcome.imports[key], step, is_anew=is_anew, lane=lane)
    return outcome.document, outcome.imports


async def _remind(
    connection: AsyncConnection, one: Import, step: Due | None, *, is_anew: bool, lane: int
) -> None:
    """Write what is due for an import; where the same stage is due already, leave it in peace."""
    if not is_anew:
        current = await reminders.stage_of(connection, one.import_id)
        if current == (step.stage if step else None):
            return
    if step is None:
        await reminders.rest(connection, one.import_id)
        return
    await reminders.put(
        connection,
        subject_id=one.import_id,
        org_id=one.org_id,
        stage=step.stage,
        due_at=step.at,
        payload=import_payload(one),
        lane=lane,
    )


def import_payload(one: Import) -> dict[str, str | int]:
    """Return the ids that a delivery about an import carries."""
    return {
        "schema": PAYLOAD_SCHEMA,
        "org_id": one.org_id,
        "document_id": one.document_id,
        "import_id": one.import_id,
        "round": one.round,
    }


async def save_import(connection: AsyncConnection, one: Import) -> None:
    """Write an import's row; pages of a limit that it needs no more are free."""
    await connection.execute(_SAVE_IMPORT, {"of": one.import_id} | import_columns(one))
    await release_unless_needed(connection, one)


async def save_document(connection: AsyncConnection, document: Document) -> None:
    """Write what convergence decides of a document's row."""
    row = {"of": document.document_id} | document_columns(document)
    await connection.execute(_SAVE_DOCUMENT, row)


def document_columns(document: Document) -> dict[str, Any]:
    """Return the columns of ``documents`` that convergence decides."""
    return {
        "wanted_import_id": document.wanted,
        "live_import_id": document.live.import_id if document.live else None,
        "live_round": document.live.round if document.live else None,
        "seq": document.seq,
        "unwanted_reason": document.unwanted_reason,
        "erase_at": document.erase_at,
        "misplaced": document.misplaced,
    }


async def record_event(
    connection: AsyncConnection,
    one: Import,
    event: Event | str,
    *,
    now: int,
    **told: Unpack[Told],
) -> None:
    """Append a line to the passport of an import."""
    await connection.execute(_RECORD_EVENT, event_row(one, event, now=now, **told))


def wanting(document: Document, import_id: str) -> Document:
    """Return the document with ``import_id`` wanted; ``seq`` rises if that is a change."""
    if document.wanted == import_id:
        return document
    return replace(
        document, wanted=import_id, seq=document.seq + 1, unwanted_reason=None, erase_at=None
    )


def wanting_nothing(document: Document, *, reason: Reason, erase_at: int) -> Document:
    """Return the document with nothing wanted, its content to be erased at ``erase_at``."""
    if document.wanted is None:
        return document
    return replace(
        document, wanted=None, seq=document.seq + 1, unwanted_reason=reason, erase_at=erase_at
    )

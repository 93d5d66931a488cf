"""Convergence of many documents at once: a folder that leaves, or comes back, with all it holds.

What :func:`drivefeed.catalog.documents.settle_into` does for one, in a few statements for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from sqlalchemy import bindparam, select, update

from drivefeed.catalog.dialect import among, as_many
from drivefeed.catalog.documents import (
    document_columns,
    import_columns,
    import_payload,
)
from drivefeed.catalog.many_rows import insert_all
from drivefeed.catalog.passport_lines import event_row
from drivefeed.catalog.quota import release_all_unless_needed
from drivefeed.catalog.reminder_rows import due_row
from drivefeed.catalog.reminders_many import put_all, rest_all, stages_of
from drivefeed.catalog.tables import coverage, documents, import_events, imports
from drivefeed.domain.converge import converge, relieved

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from sqlalchemy import Select
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.domain.converge import Due
    from drivefeed.domain.model import Document, Import

_SAVE_IMPORTS = update(imports).where(imports.c.id == bindparam("of"))
_SAVE_DOCUMENTS = update(documents).where(documents.c.id == bindparam("of"))


@dataclass(frozen=True, slots=True)
class Change:
    """A document that is to be converged.

    Attributes:
        before: as its row still says.
        document: as it should be, before convergence.
        known: all its imports, as their rows say.
    """

    before: Document
    document: Document
    known: dict[str, Import]


async def settle_all(
    connection: AsyncConnection, changes: Sequence[Change], *, now: int, lane: int
) -> None:
    """Converge documents, each once, and write what follows: rows, events, reminders."""
    events: list[dict[str, Any]] = []
    moved: list[Import] = []
    changed: list[Document] = []
    anew: list[tuple[Import, Due | None]] = []
    maybe: list[tuple[Import, Due | None]] = []
    for each in changes:
        changed_mind = each.document.wanted != each.before.wanted
        # What a person was asked, or waited for, belongs to the mind that was changed.
        calm = {key: relieved(one) for key, one in each.known.items()}
        outcome = converge(each.document, (calm if changed_mind else each.known).values(), now=now)
        events += [
            event_row(move.after, move.event, now=now, reason=move.after.reason)
            for move in outcome.moves
        ]
        moved += [one for key, one in outcome.imports.items() if one != each.known[key]]
        if outcome.document != each.before:
            changed.append(outcome.document)
        stepped = {move.after.import_id for move in outcome.moves}
        for key, step in outcome.due.items():
            steps = anew if changed_mind or key in stepped else maybe
            steps.append((outcome.imports[key], step))
    await insert_all(connection, import_events, events)
    if moved:
        rows = [{"of": one.import_id} | import_columns(one) for one in moved]
        await connection.execute(_SAVE_IMPORTS, rows)
    await release_all_unless_needed(connection, moved)
    if changed:
        rows = [{"of": one.document_id} | document_columns(one) for one in changed]
        await connection.execute(_SAVE_DOCUMENTS, rows)
    due = await stages_of(connection, [one.import_id for one, _ in maybe])
    anew += [
        (one, step)
        for one, step in maybe
        if due.get(one.import_id) != (step.stage if step else None)
    ]
    await _remind(connection, anew, lane=lane)


async def _remind(
    connection: AsyncConnection, steps: Sequence[tuple[Import, Due | None]], *, lane: int
) -> None:
    await rest_all(connection, [one.import_id for one, step in steps if step is None])
    await put_all(
        connection,
        [
            due_row(
                subject_id=one.import_id,
                org_id=one.org_id,
                stage=step.stage,
                due_at=step.at,
                payload=import_payload(one),
                lane=lane,
            )
            for one, step in steps
            if step is not None
        ],
    )


async def admitted_somewhere(
    connection: AsyncConnection, document_ids: Collection[str]
) -> set[str]:
    """Return those of some documents that any connection admits."""
    name = connection.dialect.name
    rows = await connection.execute(_admitted(name), {"ids": as_many(name, document_ids)})
    return {str(key) for key in rows.scalars()}


@cache
def _admitted(dialect: str) -> Select[Any]:
    return (
        select(coverage.c.document_id)
        .where(among(dialect, coverage.c.document_id, "ids"), coverage.c.admitted)
        .distinct()
    )

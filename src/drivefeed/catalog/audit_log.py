"""The audit log: who changed what, from what to what; append-only.

An entry is written by the transaction that makes the change, so that there is neither a change
without an entry nor an entry without a change.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import insert, select

from drivefeed.catalog.access_tables import audit_log
from drivefeed.catalog.engine import now_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog


@dataclass(frozen=True, slots=True)
class Entry:
    """One change; ``at`` is in milliseconds since the epoch."""

    at: int
    actor: str
    action: str
    subject_id: str
    before: Any
    after: Any


async def record(
    connection: AsyncConnection,
    *,
    org_id: str,
    actor: str,
    action: str,
    subject_id: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Write an entry within the transaction of :meth:`Catalog.write` that makes the change.

    Args:
        actor: a user of the machine, a key's name, or a part of drivefeed.
        action: ``noun.verb`` in the past tense, such as ``connection.changed``.
        before, after: values for JSON. Never a secret.
    """
    await connection.execute(
        insert(audit_log).values(
            org_id=org_id,
            at=now_of(connection),
            actor=actor,
            action=action,
            subject_id=subject_id,
            before=_text(before),
            after=_text(after),
        )
    )


def _text(value: Mapping[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(dict(value), ensure_ascii=False)


async def entries_of(catalog: Catalog, subject_id: str) -> list[Entry]:
    """Return what happened to a subject, the oldest first."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(audit_log).where(audit_log.c.subject_id == subject_id).order_by(audit_log.c.id)
        )
        return [
            Entry(
                row.at,
                row.actor,
                row.action,
                row.subject_id,
                json.loads(row.before) if row.before else None,
                json.loads(row.after) if row.after else None,
            )
            for row in rows
        ]

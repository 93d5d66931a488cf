"""When each drive is to be listed in full again, and how its last such check ended."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import exists, select

from drivefeed.catalog.dialect import insert
from drivefeed.catalog.sources import drive_of
from drivefeed.catalog.tables import connections, drives, facts

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.sources import Drive

_FACT: Final = "reconcile:"


@dataclass(frozen=True, slots=True)
class Reconciled:
    """The standing of a drive's full checks.

    Attributes:
        due_at: when the next one begins.
        ended_at: when the last one ended; None before the first.
        listed, suspects, found, unclear: what it counted.
        trouble: what keeps the one that is due from going on, as a sentence.
    """

    due_at: int
    ended_at: int | None = None
    listed: int = 0
    suspects: int = 0
    found: int = 0
    unclear: int = 0
    trouble: str = ""


# Asked every few seconds of an idle day, so they are put together once.
_FLOWS = exists().where(connections.c.drive_id == drives.c.id, connections.c.paused.is_(False))
_FOLLOWED = (
    select(drives)
    .where(_FLOWS, drives.c.attention.is_(None), drives.c.last_round_at.is_not(None))
    .order_by(drives.c.id)
)
_STANDINGS = select(facts.c.name, facts.c.value).where(facts.c.name.startswith(_FACT))


async def reconciled(catalog: Catalog) -> list[tuple[Drive, Reconciled | None]]:
    """Return the drives that some connection follows, each with its standing."""
    async with catalog.read() as connection:
        rows = await connection.execute(_FOLLOWED)
        found = [drive_of(row) for row in rows.mappings()]
        stored = await connection.execute(_STANDINGS)
        known = {
            name.removeprefix(_FACT): Reconciled(**json.loads(value)) for name, value in stored
        }
    return [(one, known.get(one.drive_id)) for one in found]


async def note_reconciled(catalog: Catalog, drive_id: str, one: Reconciled) -> None:
    """Keep the standing of a drive's full checks."""
    value = json.dumps(asdict(one))
    async with catalog.write("reconcile.note") as connection:
        statement = insert(connection, facts).values(name=f"{_FACT}{drive_id}", value=value)
        await connection.execute(
            statement.on_conflict_do_update(index_elements=["name"], set_={"value": value})
        )

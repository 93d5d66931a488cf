"""What the processes of an installation find down, as rows: each tells with its heartbeat.

A breaker lives in the process that works with its part, while notices are sent by the scheduler and
``status`` is asked in a process of its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import delete, func, select

from drivefeed.catalog.dialect import upsert
from drivefeed.catalog.tables import facts, heartbeats

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog

DEAD_AFTER_MS: Final = 8_000
"""A process that was not seen for so long is dead."""
_PREFIX: Final = "down:"


@dataclass(frozen=True, slots=True)
class Down:
    """A part that does not answer.

    Attributes:
        since: when it was first found down.
        words: the last that was said about it.
    """

    since: int
    words: str


async def tell_down(connection: AsyncConnection, owner: str, down: Mapping[str, Down]) -> None:
    """Write down what a process finds down; what was said by those that are gone is removed."""
    is_told = facts.c.name.like(f"{_PREFIX}%")
    teller = func.substr(facts.c.name, len(_PREFIX) + 1)
    gone = teller.not_in(select(heartbeats.c.owner))
    await connection.execute(delete(facts).where(is_told, gone | (teller == owner)))
    if down:
        value = json.dumps({name: [one.since, one.words] for name, one in down.items()})
        await upsert(connection, facts, [{"name": _PREFIX + owner, "value": value}])


async def read_down(connection: AsyncConnection, *, now: int) -> dict[str, Down]:
    """Return what living processes find down, by name; of several, who knew it first."""
    rows = await connection.execute(
        select(facts.c.value)
        .join(heartbeats, facts.c.name == _PREFIX + heartbeats.c.owner)
        .where(heartbeats.c.seen_at >= now - DEAD_AFTER_MS)
    )
    told: dict[str, Down] = {}
    for value in rows.scalars():
        for name, (since, words) in json.loads(value).items():
            if name not in told or since < told[name].since:
                told[name] = Down(int(since), str(words))
    return told


async def parts_down(catalog: Catalog) -> dict[str, Down]:
    """Return the same as of now."""
    async with catalog.read() as connection:
        return await read_down(connection, now=catalog.clock.now())


async def youngest_start(connection: AsyncConnection, *, now: int) -> int:
    """Return when the youngest of the living processes began; 0 where there is none."""
    found = await connection.scalar(
        select(func.max(heartbeats.c.started_at)).where(heartbeats.c.seen_at >= now - DEAD_AFTER_MS)
    )
    return int(found or 0)

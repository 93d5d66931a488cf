"""How the budgets at Microsoft stand, as rows: one process tells, everybody else reads."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import delete, select

from drivefeed.catalog.dialect import insert
from drivefeed.catalog.tables import accounts, connections, drives, facts
from drivefeed.domain.budget import BudgetStanding, Lane

if TYPE_CHECKING:
    from collections.abc import Iterable

    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog

FRESH_MS: Final = 60_000
"""What was told so long ago says nothing of the last minute, nor of who waits."""
_FORGOTTEN_AFTER_MS: Final = 25 * 3_600_000
_PREFIX: Final = "budget:"


@dataclass(frozen=True, slots=True)
class ToldBudget:
    """The budget of an app in a tenant, for an org whose accounts spend from it.

    Attributes:
        accounts: their names, by account id.
        connections: ids of what is read through them.
    """

    org_id: str
    accounts: dict[str, str]
    standing: BudgetStanding
    connections: set[str] = field(default_factory=set)


async def tell_budgets(catalog: Catalog, standings: Iterable[BudgetStanding]) -> None:
    """Write down how budgets stand."""
    now = catalog.clock.now()
    async with catalog.write("budgets", beside=True) as connection:
        for one in standings:
            value = json.dumps(
                {
                    "tenant_id": one.tenant_id,
                    "client_id": one.client_id,
                    "used_minute": one.used_minute,
                    "per_minute": one.per_minute,
                    "used_day": one.used_day,
                    "per_day": one.per_day,
                    "closed_ms": one.closed_ms,
                    "throttled_ms": one.throttled_ms,
                    "waiting": {str(int(lane)): count for lane, count in one.waiting.items()},
                    "is_shared": one.is_shared,
                    "at": now,
                }
            )
            statement = insert(connection, facts).values(name=_name(one), value=value)
            await connection.execute(
                statement.on_conflict_do_update(index_elements=["name"], set_={"value": value})
            )


async def forget_budgets(catalog: Catalog) -> None:
    """Remove what was told too long ago to say anything, such as of apps that are gone."""
    now = catalog.clock.now()
    async with catalog.read() as connection:
        old = [
            name for name, said in await _said(connection) if said["at"] < now - _FORGOTTEN_AFTER_MS
        ]
    if old:
        async with catalog.write("budgets.old", beside=True) as connection:
            await connection.execute(delete(facts).where(facts.c.name.in_(old)))


async def budgets_told(catalog: Catalog, org_id: str | None = None) -> list[ToldBudget]:
    """Return the budgets that accounts spend from, of one org or of all."""
    async with catalog.read() as connection:
        return await read_budgets(connection, now=catalog.clock.now(), org_id=org_id)


async def read_budgets(
    connection: AsyncConnection, *, now: int, org_id: str | None = None
) -> list[ToldBudget]:
    """Return the same within a transaction."""
    standings = [_standing(said, now) for _, said in await _said(connection)]
    told = {(each.tenant_id, each.client_id): each for each in standings if each is not None}
    if not told:
        return []
    rows = await connection.execute(select(accounts).order_by(accounts.c.name))
    found: dict[tuple[str, tuple[str, str]], ToldBudget] = {}
    for row in rows.mappings():
        app = ((row["tenant_id"] or "").casefold(), (row["client_id"] or "").casefold())
        if app in told and org_id in {None, row["org_id"]}:
            one = found.setdefault((row["org_id"], app), ToldBudget(row["org_id"], {}, told[app]))
            one.accounts[row["id"]] = row["name"]
    read = await connection.execute(
        select(connections.c.id, drives.c.account_id).join(
            drives, drives.c.id == connections.c.drive_id
        )
    )
    for row in read.mappings():
        for one in found.values():
            if row["account_id"] in one.accounts:
                one.connections.add(row["id"])
    return list(found.values())


async def _said(connection: AsyncConnection) -> list[tuple[str, dict[str, Any]]]:
    rows = await connection.execute(
        select(facts).where(facts.c.name > _PREFIX, facts.c.name < _PREFIX + "~")
    )
    return [(row.name, json.loads(row.value)) for row in rows]


def _standing(said: dict[str, Any], now: int) -> BudgetStanding | None:
    age = max(0, now - said.pop("at"))
    waiting = {Lane(int(lane)): count for lane, count in said.pop("waiting").items()}
    if age > _FORGOTTEN_AFTER_MS:
        return None
    one = BudgetStanding(**said, waiting=waiting)
    one = replace(one, closed_ms=max(0, one.closed_ms - age))
    return one if age < FRESH_MS else replace(one, used_minute=0, waiting={}, throttled_ms=0)


def _name(one: BudgetStanding) -> str:
    app = f"{one.tenant_id}:{one.client_id}"
    return _PREFIX + hashlib.sha256(app.encode()).hexdigest()[:32]

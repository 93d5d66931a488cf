"""Organizations as rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Table, func, select, update
from sqlalchemy import insert as plain_insert

from drivefeed.catalog.audit_log import record
from drivefeed.catalog.tables import accounts, connections, orgs
from drivefeed.domain.errors import AlreadyExists, NeedsAttention, NotFound
from drivefeed.domain.reasons import Reason

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog


@dataclass(frozen=True, slots=True)
class Org:
    """A row of ``orgs``, and how many accounts and connections it has."""

    org_id: str
    name: str
    accounts: int
    connections: int
    created_at: int


async def all_orgs(catalog: Catalog) -> list[Org]:
    """Return all orgs by name."""
    async with catalog.read() as connection:
        rows = await connection.execute(
            select(orgs, _count(accounts, "accounts"), _count(connections, "connections")).order_by(
                orgs.c.name
            )
        )
        return [
            Org(row["id"], row["name"], row["accounts"], row["connections"], row["created_at"])
            for row in rows.mappings()
        ]


async def add_org(catalog: Catalog, name: str, *, actor: str = "drivefeed") -> str:
    """Make an org; return its id.

    Raises:
        AlreadyExists: there is one of that name.
    """
    async with catalog.write("org.add") as connection:
        await _refuse_taken(connection, name)
        org_id = catalog.ids.new()
        await connection.execute(
            plain_insert(orgs).values(id=org_id, name=name, created_at=catalog.clock.now())
        )
        await record(
            connection,
            org_id=org_id,
            actor=actor,
            action="org.added",
            subject_id=org_id,
            after={"name": name},
        )
    return org_id


async def rename_org(catalog: Catalog, name: str, to: str, *, actor: str = "drivefeed") -> str:
    """Give an org another name; return its id.

    Raises:
        NotFound: there is none.
        AlreadyExists: the other name is taken.
        NeedsAttention: the settings name it; the next start would make it again.
    """
    async with catalog.write("org.rename") as connection:
        found = await connection.execute(select(orgs.c.id).where(orgs.c.name == name))
        org_id = found.scalar_one_or_none()
        if org_id is None:
            raise NotFound(f"There is no organization '{name}'.")
        await _refuse_taken(connection, to)
        declared = await connection.execute(
            select(accounts.c.name).where(accounts.c.org_id == org_id, accounts.c.declared).limit(1)
        )
        account = declared.scalar_one_or_none()
        if account is not None:
            raise NeedsAttention(
                f"The settings say that account '{account}' belongs to '{name}'. Change the name "
                "there after taking the account out, or keep it.",
                reason=Reason.MISCONFIGURED,
            )
        await connection.execute(update(orgs).where(orgs.c.id == org_id).values(name=to))
        await record(
            connection,
            org_id=str(org_id),
            actor=actor,
            action="org.renamed",
            subject_id=str(org_id),
            before={"name": name},
            after={"name": to},
        )
    return str(org_id)


async def _refuse_taken(connection: AsyncConnection, name: str) -> None:
    found = await connection.execute(select(orgs.c.id).where(orgs.c.name == name))
    if found.scalar_one_or_none() is not None:
        raise AlreadyExists(f"There is an organization '{name}' already.")


def _count(table: Table, label: str) -> Any:
    counted = select(func.count()).where(table.c.org_id == orgs.c.id).correlate(orgs)
    return counted.scalar_subquery().label(label)

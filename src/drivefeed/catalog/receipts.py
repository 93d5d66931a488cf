"""Receipts of connections that were disconnected: facts of the catalog, ids and numbers alone."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, exists, literal, select, update

from drivefeed.catalog.dialect import insert
from drivefeed.catalog.tables import connections, facts

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.domain.model import Connection

SETTINGS: Final = "settings"
"""Who connects the folders of the settings, at each start."""
_FACT: Final = "receipt:"
HAS_RECEIPT: Final = exists().where(facts.c.name == literal(_FACT) + connections.c.id)
"""Whether a connection was disconnected, and nobody connected its folder again since."""

DISCONNECTED: Final = and_(connections.c.paused, HAS_RECEIPT)
"""Whether a connection was stopped for good."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What became of a connection that was disconnected. It holds no name and no content.

    Attributes:
        policy: ``keep`` or ``erase``.
        documents: how many documents were erased with it.
        imports: how many versions of them had ended by then, each with its object and points gone.
        charged_kept: whether the entries of the ledger stay; they always do.
        items: rows of the shadow tree that went; 0 where other connections use the drive.
        signs_out: whether the credential of its account is to go too.
        signed_out: whether it went; while Microsoft is still to be told to call no more, it stays.
        ended_at: when all of it was done; None before.
    """

    connection_id: str
    org_id: str
    drive_id: str
    root_item_id: str
    policy: str
    at: int
    documents: int = 0
    imports: int = 0
    items: int = 0
    signs_out: bool = False
    signed_out: bool = False
    ended_at: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


# Asked all day, so it is put together once.
_ALL = select(facts.c.value).where(facts.c.name.startswith(_FACT))


async def receipts(catalog: Catalog) -> list[Receipt]:
    """Return all receipts, the oldest first."""
    async with catalog.read() as connection:
        rows = await connection.execute(_ALL)
        found = [Receipt(**json.loads(value)) for value in rows.scalars()]
    return sorted(found, key=lambda one: one.at)


async def unfinished(connection: AsyncConnection, each: Connection) -> Receipt | None:
    """Return the receipt of an erasure of a connection that is still under way."""
    said = await connection.scalar(
        select(facts.c.value).where(facts.c.name == f"{_FACT}{each.connection_id}")
    )
    one = Receipt(**json.loads(said)) if said else None
    is_meant = one is not None and one.root_item_id == each.root_item_id
    return one if one and is_meant and one.policy == "erase" and one.ended_at is None else None


async def keep_receipt(connection: AsyncConnection, one: Receipt) -> Receipt:
    """Write a receipt, and return it; one of an earlier time stays so, whoever still has it."""
    former = replace(one, root_item_id="")
    earlier = update(facts).where(facts.c.name == _name_of(former, is_earlier=True))
    found = await connection.execute(earlier.values(value=json.dumps(former.as_dict())))
    if found.rowcount:
        return former
    value = json.dumps(one.as_dict())
    statement = insert(connection, facts).values(name=_name_of(one), value=value)
    await connection.execute(
        statement.on_conflict_do_update(index_elements=["name"], set_={"value": value})
    )
    return one


def _name_of(one: Receipt, *, is_earlier: bool = False) -> str:
    """Return the name of its fact; ``is_earlier``: its folder was connected again since."""
    return f"{_FACT}{one.connection_id}" + (f"@{one.at}" if is_earlier else "")


async def disconnected_at(catalog: Catalog, drive_id: str, root_item_id: str) -> Receipt | None:
    """Return the receipt of a folder whose connection was disconnected last; None without one."""
    for one in reversed(await receipts(catalog)):
        if (one.drive_id, one.root_item_id) == (drive_id, root_item_id):
            return one
    return None


async def forget_receipts(
    connection: AsyncConnection, drive_id: str, root_item_id: str, *, actor: str
) -> None:
    """A person connects a folder again: that it was disconnected keeps it away no more.

    The receipts stay, as what became of it at their time.
    """
    if actor == SETTINGS:
        return
    rows = await connection.execute(
        select(facts.c.name, facts.c.value).where(facts.c.name.startswith(_FACT))
    )
    for name, value in list(rows):
        one = Receipt(**json.loads(value))
        if (one.drive_id, one.root_item_id) == (drive_id, root_item_id):
            await connection.execute(
                update(facts)
                .where(facts.c.name == name)
                .values(name=_name_of(one, is_earlier=True))
            )
            await keep_receipt(connection, one)

"""Sealing secrets anew with the newest key, a few rows at a time.

Secrets are those of accounts and the keys of embedding services that organizations chose.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import literal, select, union, update

from drivefeed.catalog.access_tables import credentials
from drivefeed.catalog.audit_log import record
from drivefeed.catalog.index_tables import org_embeddings
from drivefeed.catalog.tables import accounts, orgs
from drivefeed.domain.errors import NeedsAttention
from drivefeed.secrets.ring import Sealed

if TYPE_CHECKING:
    from sqlalchemy import RowMapping, Select, Table

    from drivefeed.catalog.engine import Catalog
    from drivefeed.secrets.ring import KeyRing

RESEALED_AT_ONCE = 20
"""Rows that one transaction of a rotation writes."""


@dataclass(frozen=True, slots=True)
class Resealed:
    """What a step of a rotation did.

    Attributes:
        last: the id of the last row it looked at; None where there are no more.
        done: how many rows have the newest key now that had another.
        refused: for each row that could not be opened, whose it is (an account's name, or the
            embedding of an organization) and a sentence.
    """

    last: str | None
    done: int
    refused: list[tuple[str, str]]


async def reseal_some(
    catalog: Catalog, ring: KeyRing, *, beyond: str = "", limit: int = RESEALED_AT_ONCE
) -> Resealed:
    """Seal some rows anew that an older key sealed; one transaction.

    A rotation that was interrupted goes on by being started again. Revisions stay, because the
    values do; a row that was written meanwhile is left as it is, and found by the next rotation
    if it needs one.

    Args:
        beyond: only rows whose id comes after this one.

    Raises:
        NeedsAttention: there is no key to seal with.
    """
    newest = await asyncio.to_thread(lambda: ring.newest.key_id)
    async with catalog.read() as connection:
        found = [
            (table, row)
            for table, whose in _TABLES
            for row in (await connection.execute(_older(table, whose, newest, beyond, limit)))
            .mappings()
            .all()
        ]
    found = sorted(found, key=lambda one: str(one[1]["id"]))[:limit]
    refused: list[tuple[str, str]] = []
    anew: list[tuple[Table, RowMapping, Sealed]] = []
    for table, row in found:
        try:
            anew.append((table, row, await asyncio.to_thread(_resealed, ring, row)))
        except NeedsAttention as error:
            refused.append((str(row["whose"]), str(error)))
    done = 0
    if anew:
        async with catalog.write("credential.reseal") as connection:
            for table, row, sealed in anew:
                result = await connection.execute(
                    update(table)
                    .where(
                        table.c.id == row["id"],
                        table.c.revision == row["revision"],
                        table.c.key_id == row["key_id"],
                    )
                    .values(sealed=sealed.value, key_id=sealed.key_id)
                )
                done += result.rowcount
    return Resealed(str(found[-1][1]["id"]) if found else None, done, refused)


async def note_rotation(catalog: Catalog, *, key_id: str, actor: str) -> None:
    """Tell the audit log of every org with secrets that they are sealed by this key now."""
    async with catalog.write("credential.rotated") as connection:
        rows = await connection.execute(
            union(
                select(credentials.c.org_id),
                select(org_embeddings.c.org_id).where(org_embeddings.c.sealed.is_not(None)),
            )
        )
        for org_id in rows.scalars().all():
            await record(
                connection,
                org_id=str(org_id),
                actor=actor,
                action="secrets.rotated",
                subject_id=str(org_id),
                after={"key_id": key_id},
            )


def _older(
    table: Table, whose: Select[tuple[str]], newest: str, beyond: str, limit: int
) -> Select[Any]:
    return (
        select(table, whose.scalar_subquery().label("whose"))
        .where(table.c.key_id != newest, table.c.id > beyond)
        .order_by(table.c.id)
        .limit(limit)
    )


_TABLES: Final = (
    (credentials, select(accounts.c.name).where(accounts.c.id == credentials.c.account_id)),
    (
        org_embeddings,
        select(literal("the embedding of ") + orgs.c.name).where(
            orgs.c.id == org_embeddings.c.org_id
        ),
    ),
)
"""What is sealed, and whose it is."""


def _resealed(ring: KeyRing, row: RowMapping) -> Sealed:
    plain = ring.unseal(Sealed(row["sealed"], row["key_id"]), row_id=row["id"])
    return ring.seal(plain, row_id=row["id"])

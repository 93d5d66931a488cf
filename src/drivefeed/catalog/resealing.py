"""Sealing credentials anew with the newest key, a few rows at a time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import select, update

from drivefeed.catalog.access_tables import credentials
from drivefeed.catalog.audit_log import record
from drivefeed.catalog.tables import accounts
from drivefeed.domain.errors import NeedsAttention
from drivefeed.secrets.ring import Sealed

if TYPE_CHECKING:
    from sqlalchemy import RowMapping

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
        refused: for each row that could not be opened, the account's name and a sentence.
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
        rows = await connection.execute(
            select(credentials, accounts.c.name.label("account"))
            .join(accounts, accounts.c.id == credentials.c.account_id)
            .where(credentials.c.key_id != newest, credentials.c.id > beyond)
            .order_by(credentials.c.id)
            .limit(limit)
        )
        found = list(rows.mappings())
    refused: list[tuple[str, str]] = []
    anew: list[tuple[RowMapping, Sealed]] = []
    for row in found:
        try:
            anew.append((row, await asyncio.to_thread(_resealed, ring, row)))
        except NeedsAttention as error:
            refused.append((str(row["account"]), str(error)))
    done = 0
    if anew:
        async with catalog.write("credential.reseal") as connection:
            for row, sealed in anew:
                result = await connection.execute(
                    update(credentials)
                    .where(
                        credentials.c.id == row["id"],
                        credentials.c.revision == row["revision"],
                        credentials.c.key_id == row["key_id"],
                    )
                    .values(sealed=sealed.value, key_id=sealed.key_id)
                )
                done += result.rowcount
    return Resealed(str(found[-1]["id"]) if found else None, done, refused)


async def note_rotation(catalog: Catalog, *, key_id: str, actor: str) -> None:
    """Tell the audit log of every org with credentials that they are sealed by this key now."""
    async with catalog.write("credential.rotated") as connection:
        rows = await connection.execute(select(credentials.c.org_id).distinct())
        for org_id in rows.scalars().all():
            await record(
                connection,
                org_id=str(org_id),
                actor=actor,
                action="secrets.rotated",
                subject_id=str(org_id),
                after={"key_id": key_id},
            )


def _resealed(ring: KeyRing, row: RowMapping) -> Sealed:
    plain = ring.unseal(Sealed(row["sealed"], row["key_id"]), row_id=row["id"])
    return ring.seal(plain, row_id=row["id"])

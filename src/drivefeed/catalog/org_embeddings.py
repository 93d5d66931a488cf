"""What organizations chose to be embedded with: provider, model, address, and a sealed key.

A choice changes nothing in search. Until a collection is built with it and put in use
(:mod:`drivefeed.catalog.collections`), the former choice is kept for the collection in use.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import insert as plain_insert
from sqlalchemy import select, update

from drivefeed.catalog.audit_log import record
from drivefeed.catalog.collections import forget_choices
from drivefeed.catalog.credentials import ensure_key
from drivefeed.catalog.index_tables import org_embeddings
from drivefeed.domain.redact import hide
from drivefeed.secrets.ring import Sealed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import ColumnElement, RowMapping
    from sqlalchemy.ext.asyncio import AsyncConnection

    from drivefeed.catalog.engine import Catalog
    from drivefeed.secrets.ring import KeyRing

_HARMLESS: Final = frozenset({"batch", "timeout_seconds"})
"""Options that change how a service is asked, and no vector."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What an embedder is to be made of.

    Attributes:
        base_url: empty for the service's usual address, and for models of this machine.
        options: dimension, prefixes and the like, by their names in the settings.
        api_key: None where the service asks for none.
    """

    provider: str
    model: str = ""
    base_url: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    api_key: str | None = field(default=None, repr=False)

    @property
    def vectors(self) -> tuple[Any, ...]:
        """What makes its vectors differ from those of another."""
        telling = {key: value for key, value in self.options.items() if key not in _HARMLESS}
        return self.provider, self.model, tuple(sorted(telling.items()))

    def as_dict(self) -> dict[str, Any]:
        """Return it for people and for the audit log, without the key."""
        return {
            "provider": self.provider,
            "model": self.model,
            "base_url": self.base_url,
            **self.options,
            "has_key": self.api_key is not None,
        }


@dataclass(frozen=True, slots=True)
class Choice:
    """A wish of an organization, as it is remembered.

    Attributes:
        revision: rises with each change of address, key or pace; its vectors stay the same.
        wanted: whether the organization asks for it, or a collection is only made with it still.
    """

    choice_id: str
    org_id: str
    wish: Wish
    revision: int
    wanted: bool


async def wanted_by(catalog: Catalog, ring: KeyRing, org_id: str) -> Choice | None:
    """Return what an organization asks for; None where it is with the installation's.

    Raises:
        NeedsAttention: its key cannot be opened.
    """
    row = await _one(catalog, org_embeddings.c.org_id == org_id, org_embeddings.c.wanted.is_(True))
    return None if row is None else await _choice(ring, row)


async def choice_of(catalog: Catalog, ring: KeyRing, choice_id: str) -> Choice | None:
    """Return a choice by its id, or None.

    Raises:
        NeedsAttention: its key cannot be opened.
    """
    row = await _one(catalog, org_embeddings.c.id == choice_id)
    return None if row is None else await _choice(ring, row)


async def revisions(catalog: Catalog) -> dict[str, int]:
    """Return the revision of each choice; no key is opened."""
    async with catalog.read() as connection:
        rows = await connection.execute(select(org_embeddings.c.id, org_embeddings.c.revision))
        return {str(choice_id): int(revision) for choice_id, revision in rows}


async def choose(catalog: Catalog, ring: KeyRing, org_id: str, wish: Wish, *, actor: str) -> Choice:
    """Remember what an organization asks for.

    Where only the address, the key or the pace of what it has differ, that is changed in place,
    and counts at once.

    Raises:
        NeedsAttention: there is no key to seal with.
    """
    before = await wanted_by(catalog, ring, org_id)
    stays = before is not None and before.wish.vectors == wish.vectors
    choice_id = before.choice_id if before is not None and stays else catalog.ids.new()
    revision = before.revision + 1 if before is not None and stays else 1
    async with catalog.read() as connection:
        if wish.api_key is not None:
            await ensure_key(connection, ring)
    sealed = None
    if wish.api_key is not None:
        sealed = await asyncio.to_thread(ring.seal, wish.api_key.encode(), row_id=choice_id)
    values = {
        "base_url": wish.base_url,
        "options": json.dumps(dict(wish.options)),
        "sealed": sealed.value if sealed else None,
        "key_id": sealed.key_id if sealed else None,
        "revision": revision,
        "updated_at": catalog.clock.now(),
    }
    async with catalog.write("embedding.choose") as connection:
        if stays:
            await connection.execute(
                update(org_embeddings).where(org_embeddings.c.id == choice_id).values(values)
            )
        else:
            await _unwant(connection, org_id)
            await connection.execute(
                plain_insert(org_embeddings).values(
                    id=choice_id,
                    org_id=org_id,
                    wanted=True,
                    provider=wish.provider,
                    model=wish.model,
                    **values,
                )
            )
            await forget_choices(connection)
        await record(
            connection,
            org_id=org_id,
            actor=actor,
            action="org.embedding_chosen",
            subject_id=org_id,
            before=before.wish.as_dict() if before else None,
            after=wish.as_dict(),
        )
    return Choice(choice_id, org_id, wish, revision, wanted=True)


async def choose_none(catalog: Catalog, ring: KeyRing, org_id: str, *, actor: str) -> None:
    """Remember that an organization is with the installation's embedding again."""
    before = await wanted_by(catalog, ring, org_id)
    if before is None:
        return
    async with catalog.write("embedding.choose_none") as connection:
        await _unwant(connection, org_id)
        await forget_choices(connection)
        await record(
            connection,
            org_id=org_id,
            actor=actor,
            action="org.embedding_chosen",
            subject_id=org_id,
            before=before.wish.as_dict(),
        )


async def _unwant(connection: AsyncConnection, org_id: str) -> None:
    await connection.execute(
        update(org_embeddings).where(org_embeddings.c.org_id == org_id).values(wanted=False)
    )


async def _one(catalog: Catalog, *where: ColumnElement[bool]) -> RowMapping | None:
    async with catalog.read() as connection:
        rows = await connection.execute(select(org_embeddings).where(*where))
        return rows.mappings().one_or_none()


async def _choice(ring: KeyRing, row: RowMapping) -> Choice:
    api_key = None
    if row["sealed"] is not None:
        sealed = Sealed(row["sealed"], row["key_id"])
        plain = await asyncio.to_thread(ring.unseal, sealed, row_id=row["id"])
        api_key = plain.decode()
        hide(api_key)
    wish = Wish(row["provider"], row["model"], row["base_url"], json.loads(row["options"]), api_key)
    return Choice(row["id"], row["org_id"], wish, row["revision"], row["wanted"])

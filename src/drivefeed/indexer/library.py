"""The one place that answers which collection, and which embedder, an organization has.

Every organization has a shelf (:mod:`drivefeed.indexer.shelf`). Most are lodgers in the house,
which is the installation's collection; one with an embedding of its own has its own collection.
What is told by import or document goes to the shelf of whose it is, which the catalog knows; what
the catalog does not know is looked for on all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from drivefeed.indexer.shelf import Shelf

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Sequence

    from drivefeed.ports import Point, RoundRow, SearchFilter, SearchHit


class Owners(Protocol):
    """Tells whose something is."""

    async def owner_of_import(self, import_id: str) -> str | None:
        """Return the organization's id, or None."""
        ...

    async def owner_of_document(self, document_id: str) -> str | None:
        """Return the organization's id, or None."""
        ...


class Library:
    """All shelves of a vector index; itself a :class:`~drivefeed.ports.VectorIndex` over them.

    Args:
        house: the shelf of the installation.
        owners: tells whose something is; None where nobody has a collection of their own.

    Attributes:
        house: the same.
    """

    def __init__(self, house: Shelf, owners: Owners | None = None) -> None:
        self.house = house
        self._owners = owners
        self._shelves: dict[str, Shelf] = {}

    def of(self, org_id: str) -> Shelf:
        """Return the shelf of an organization; it is the same for as long as the process lives."""
        found = self._shelves.get(org_id)
        if found is None:
            found = self._shelves[org_id] = Shelf(None, house=self.house)
        return found

    def add(self, org_id: str, shelf: Shelf) -> None:
        """Put up the shelf of an organization that the catalog knows of, before anybody asks."""
        assert org_id not in self._shelves
        self._shelves[org_id] = shelf

    @property
    def owners(self) -> dict[str, Shelf]:
        """The shelves of organizations with a collection of their own, by id."""
        return {key: shelf for key, shelf in self._shelves.items() if not shelf.is_lodger}

    @property
    def returning(self) -> list[str]:
        """The ids of organizations that are moving into the house."""
        return [key for key, shelf in self._shelves.items() if shelf.is_returning]

    @property
    def is_divided(self) -> bool:
        """Whether any organization has a collection of its own."""
        return any(not shelf.is_lodger for shelf in self._shelves.values())

    @property
    def models_loaded(self) -> int:
        """How many models are in the memory of this process: each is there once."""
        embedders = [shelf.current.embedder for shelf in (self.house, *self.owners.values())]
        return len({(one.provider, one.name) for one in embedders if one.loaded})

    async def upsert(self, points: Sequence[Point]) -> None:
        """Write points to the collections in use."""
        for org_id in sorted({point.org_id for point in points}):
            await self.of(org_id).upsert([one for one in points if one.org_id == org_id])

    async def search(
        self, *, vector: Sequence[float], text: str, where: SearchFilter, limit: int
    ) -> list[SearchHit]:
        """Find the best points of the collection that the organization has in use."""
        shelf = self.of(where.org_id)
        return await shelf.search(vector=vector, text=text, where=where, limit=limit)

    async def set_live(self, *, import_id: str, round_: int, live: bool) -> int:
        """Set the live flag on all points of a round; return how many there are in use."""
        return sum(
            [
                await shelf.set_live(import_id=import_id, round_=round_, live=live)
                for shelf in await self._of_import(import_id)
            ]
        )

    async def set_folders(self, *, document_id: str, name: str, folders: tuple[str, ...]) -> int:
        """Update name and folders of a document; return how many points there are in use."""
        return sum(
            [
                await shelf.set_folders(document_id=document_id, name=name, folders=folders)
                for shelf in await self._of_document(document_id)
            ]
        )

    async def remove(self, *, import_id: str, round_: int) -> int:
        """Remove all points of a round; return how many were in use."""
        return sum(
            [
                await shelf.remove(import_id=import_id, round_=round_)
                for shelf in await self._of_import(import_id)
            ]
        )

    async def remove_of(self, *, org_id: str) -> int:
        """Remove all points of an organization from the collection that it has in use."""
        return await self.of(org_id).remove_of(org_id=org_id)

    async def count(self, *, import_id: str | None = None, round_: int | None = None) -> int:
        """Count points in use, of one round or of all."""
        if import_id is None:
            return sum([points async for _, _, _, points in self.rounds()])
        return sum(
            [
                await shelf.count(import_id=import_id, round_=round_)
                for shelf in await self._of_import(import_id)
            ]
        )

    async def rounds(self, *, org_id: str | None = None) -> AsyncIterator[RoundRow]:
        """Yield (import id, round, live, points) for everything in use.

        What organizations build in the house is not in use yet, and what they left there on their
        way out is not any more.
        """
        if org_id is not None:
            async for row in self.of(org_id).rounds(org_id=org_id):
                yield row
            return
        moving = [
            key for key, shelf in self._shelves.items() if shelf.leaving or shelf.is_returning
        ]
        passing = {
            (import_id, round_)
            for key in moving
            async for import_id, round_, _, _ in self.house.rounds(org_id=key)
        }
        async for row in self.house.rounds():
            if row[:2] not in passing:
                yield row
        for shelf in self.owners.values():
            async for row in shelf.rounds():
                yield row

    async def points_of(self, *, import_id: str, round_: int) -> list[str]:
        """Return the ids of all points of a round in use; ("", 0) names those that are not ours."""
        shelves = await self._of_import(import_id) if import_id else self._everywhere()
        return [
            point_id
            for shelf in shelves
            for point_id in await shelf.points_of(import_id=import_id, round_=round_)
        ]

    async def remove_points(self, ids: Sequence[str]) -> int:
        """Remove points by their ids; return how many were in use."""
        return sum([await shelf.remove_points(ids) for shelf in self._everywhere()])

    async def tidy(self) -> int:
        """Remove from the house what organizations with a collection of their own have there.

        There is nothing but after a restore, where the catalog is older than the index.
        """
        moving = self.returning
        removed = 0
        for org_id in self.owners:
            if org_id not in moving:
                removed += await self.house.remove_of(org_id=org_id)
        return removed

    async def check(self) -> None:
        """Check that each collection in use answers and fits its embedding model.

        Raises:
            PartDown, NeedsAttention: with a sentence that says what is wrong.
        """
        for shelf in (self.house, *self.owners.values()):
            await shelf.check()

    async def drop(self) -> None:
        """Erase all collections in use."""
        for shelf in (*self.owners.values(), self.house):
            await shelf.drop()

    async def aclose(self) -> None:
        """Close all collections."""
        for shelf in (*self._shelves.values(), self.house):
            await shelf.aclose()

    async def _of_import(self, import_id: str) -> Iterable[Shelf]:
        if self._is_one:
            return [self.house]
        known = self._owners and await self._owners.owner_of_import(import_id)
        return [self.of(known)] if known else self._everywhere()

    async def _of_document(self, document_id: str) -> Iterable[Shelf]:
        if self._is_one:
            return [self.house]
        known = self._owners and await self._owners.owner_of_document(document_id)
        return [self.of(known)] if known else self._everywhere()

    @property
    def _is_one(self) -> bool:
        """Whether all are lodgers, and nobody moves: then the house has whatever there is."""
        return all(shelf.is_lodger and not shelf.building for shelf in self._shelves.values())

    def _everywhere(self) -> list[Shelf]:
        return [*self.owners.values(), self.house]

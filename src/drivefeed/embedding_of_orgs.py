"""What organizations have of their own in the vector index, opened from catalog and settings.

Part of the bootstrap. An organization's collection goes on with the choice that it was made with,
whatever the organization asks for by now: the catalog keeps that choice, its sealed key included,
until another collection was put in use.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from drivefeed.catalog import org_embeddings
from drivefeed.catalog.collection_rows import ALL, Made
from drivefeed.catalog.collections import collections_of, orgs_with_collections
from drivefeed.catalog.owners import CatalogOwners
from drivefeed.domain.errors import DrivefeedError, NeedsAttention
from drivefeed.domain.reasons import Reason
from drivefeed.embedding import (
    base_name,
    index_name,
    made_by,
    open_collection,
    open_index,
    open_lending,
    open_one,
    open_shelf,
    target_of,
)
from drivefeed.indexer.collection import Collection
from drivefeed.indexer.embed_naming import in_settings
from drivefeed.indexer.library import Library
from drivefeed.indexer.providers import EmbeddingChoice
from drivefeed.indexer.shelf import Shelf
from drivefeed.indexer.unopened import Unopened
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from drivefeed.catalog.engine import Catalog
    from drivefeed.catalog.org_embeddings import Choice, Wish
    from drivefeed.indexer.embed_naming import Naming
    from drivefeed.ports import Embedder
    from drivefeed.secrets.ring import KeyRing
    from drivefeed.settings import Settings

_log = log("index")


class Embeddings:
    """Opens the collections of a process, and the embedders, which are lent to all of them.

    Args:
        ring: opens the keys of services that organizations chose.
    """

    def __init__(self, settings: Settings, catalog: Catalog, ring: KeyRing) -> None:
        self._settings = settings
        self._catalog = catalog
        self._ring = ring
        self._lending = open_lending(settings, catalog)
        self._index = index_name(settings)
        self._former: list[Embedder] = []

    async def open_library(self) -> Library:
        """Open all collections that the catalog knows; nothing is asked of them yet.

        Raises:
            NeedsAttention: the installation's was made with a model that the settings do not name.
        """
        house = await open_shelf(self._settings, self._catalog, self._lending)
        library = Library(house, CatalogOwners(self._catalog))
        for org_id in await orgs_with_collections(self._catalog, self._index):
            library.add(org_id, await self._shelf_of(org_id, house))
        return library

    async def _shelf_of(self, org_id: str, house: Shelf) -> Shelf:
        known = await collections_of(self._catalog, self._index, org_id)
        shelf = Shelf(await self._opened(known.active) if known.active else None, house=house)
        shelf.leaving = bool(known.leaving)
        if known.building is not None:
            shelf.building = (
                house.current if known.is_returning else await self._opened(known.building)
            )
        return shelf

    async def _opened(self, made: Made) -> Collection:
        """Open an organization's collection; where that fails, only it has to wait."""
        try:
            return await self.open_collection(made)
        except NeedsAttention as error:
            _log.warning("collection_waits", collection=made.name, error=str(error))
            choice = (made.choice_id, -1) if made.choice_id else None
            embedder = Unopened(made.provider, made.model, made.dimension, error)
            return Collection(made.name, embedder, open_index(self._settings, made), choice)

    async def open_collection(self, made: Made) -> Collection:
        """Open a collection with the embedder that it was made with.

        Raises:
            NeedsAttention: there is no such embedder; the sentence says why.
        """
        if made.choice_id is None:
            return open_collection(self._settings, self._catalog, made, self._lending)
        choice = await org_embeddings.choice_of(self._catalog, self._ring, made.choice_id)
        if choice is None:
            raise NeedsAttention(
                f"The collection '{made.name}' was made with {made.words}, and the catalog does "
                "not know any more how that is reached. Choose an embedding for the organization "
                "with 'drivefeed org embedding', then run 'drivefeed reindex --org NAME'.",
                reason=Reason.MISCONFIGURED,
            )
        embedder = self._lending.lend(embedding_choice(choice.wish))
        found = made_by(made.name, embedder)
        if found.embedding != made.embedding:
            await embedder.aclose()
            raise NeedsAttention(
                f"The collection '{made.name}' was made with {made.words}, but the organization's "
                f"embedding is {found.words}. Vectors of two models do not compare.",
                reason=Reason.MISCONFIGURED,
            )
        index = open_index(self._settings, made)
        return Collection(made.name, embedder, index, (choice.choice_id, choice.revision))

    async def target_of(self, to: str | None, org_id: str = ALL) -> Made | None:
        """Return what a collection would be made with; None for the installation's itself.

        Args:
            to: a name of the settings, for the installation alone.
            org_id: whose.

        Raises:
            NeedsAttention: there is none of that name, or it lacks something.
        """
        if not org_id:
            return target_of(self._settings, self._catalog, to)
        if to is not None:
            raise NeedsAttention(
                "What an organization is embedded with is chosen with 'drivefeed org embedding'; "
                "'drivefeed reindex --org NAME' takes no --to.",
                reason=Reason.MISCONFIGURED,
            )
        choice = await org_embeddings.wanted_by(self._catalog, self._ring, org_id)
        return None if choice is None else self.made_with(choice)

    def made_with(self, choice: Choice) -> Made:
        """Return what a collection of a choice would be made with.

        Raises:
            NeedsAttention: the choice lacks something.
        """
        made = made_by(base_name(self._settings), self.embedder_of(choice.wish))
        return replace(made, choice_id=choice.choice_id)

    def embedder_of(self, wish: Wish, naming: Naming = in_settings) -> Embedder:
        """Return an embedder for somebody who tries a wish; nobody is asked yet.

        Args:
            wish: what is wanted.
            naming: calls what lacks or is wrong as it was given.

        Raises:
            NeedsAttention: the wish lacks something.
        """
        return open_one(
            self._settings, self._catalog, replace(embedding_choice(wish), naming=naming)
        )

    async def refresh(self, library: Library) -> list[str]:
        """Open anew what was chosen with another address or key since; return the orgs' ids.

        Search goes on: who asks the former embedder has until the next look to end with it.
        """
        await self.aclose()
        if not library.owners:
            return []
        latest = await org_embeddings.revisions(self._catalog)
        changed = []
        for org_id, shelf in library.owners.items():
            for one in (shelf.current, shelf.building):
                if one is None or one.choice is None:
                    continue
                choice_id, revision = one.choice
                if latest.get(choice_id, revision) == revision:
                    continue
                try:
                    await self._renew(one, choice_id)
                except DrivefeedError as error:
                    _log.warning("collection_waits", collection=one.name, error=str(error))
                    continue
                shelf.pause.end()
                changed.append(org_id)
        return changed

    async def _renew(self, one: Collection, choice_id: str) -> None:
        choice = await org_embeddings.choice_of(self._catalog, self._ring, choice_id)
        if choice is None:
            return
        former, one.embedder = one.embedder, self._lending.lend(embedding_choice(choice.wish))
        one.choice = (choice_id, choice.revision)
        self._former.append(former)

    async def aclose(self) -> None:
        """Close the embedders that were replaced."""
        while self._former:
            await self._former.pop().aclose()


def embedding_choice(wish: Wish) -> EmbeddingChoice:
    """Return an organization's wish as what the providers understand."""
    options: dict[str, Any] = dict(wish.options)
    return EmbeddingChoice(
        wish.provider, model=wish.model, base_url=wish.base_url, api_key=wish.api_key, **options
    )

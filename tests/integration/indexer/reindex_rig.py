"""A catalog with imports that are indexed, a store with their bytes, and a reindex over both.

The stages are played by the test; catalog, store, extraction, index and embedding are real ones.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from drivefeed.catalog.collection_rows import Made
from drivefeed.catalog.collections import collections_of, orgs_with_collections, remember_active
from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.files import fetch
from drivefeed.catalog.index_jobs import CatalogIndexJobs
from drivefeed.catalog.owners import CatalogOwners
from drivefeed.domain.identity import object_key
from drivefeed.domain.lifecycle import Event
from drivefeed.indexer.collection import Collection
from drivefeed.indexer.indexing import Indexing
from drivefeed.indexer.library import Library
from drivefeed.indexer.model import Limits
from drivefeed.indexer.providers import EmbeddingChoice, open_embedder
from drivefeed.indexer.shelf import Shelf
from drivefeed.indexer.vectors.edge import EdgeIndex
from drivefeed.ports import SearchFilter, Submission
from drivefeed.services.reindex import Reindexing
from drivefeed.services.reindex_parts import ReindexParts
from drivefeed.stores.directory import DirectoryStore
from support.catalogs import new_catalog
from support.clock import CountedIds, ManualClock, no_checkpoint
from support.embeddings import embedding_service
from unit.catalog.rig import ROOT, Rig, file, folder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.catalog.engine import Catalog
    from drivefeed.indexer.extract import ExtractionPool
    from drivefeed.services.index_turns import IndexTurns
    from support.embeddings import EmbeddingService

INDEX = "embedded"

Kind = TypeVar("Kind", bound="ReindexRig")


async def no_progress(percent: int) -> None:
    del percent


async def chunks_of(words: str) -> AsyncIterator[bytes]:
    yield words.encode()


@dataclass
class ReindexRig:
    """An installation of which a test plays the stages.

    Attributes:
        killed_at: a checkpoint at which the process is "killed", once.
        turns: has the index for this process alone; None where nobody else has it.
        chosen: the model that the organization asks for; None for the installation's.
    """

    catalog: Catalog
    rig: Rig
    store: DirectoryStore
    pool: ExtractionPool
    home: Path
    service: EmbeddingService
    killed_at: str | None = None
    chosen: str | None = None
    turns: IndexTurns | None = None

    def __post_init__(self) -> None:
        self.catalog.checkpoint = self._checkpoint
        self.jobs = CatalogIndexJobs(self.catalog)

    def _checkpoint(self, name: str) -> None:
        if name == self.killed_at:
            self.killed_at = None
            raise KilledError(name)

    def made(self, model: str, name: str = "index") -> Made:
        return Made(name, "ollama", model, self.service.dimension)

    async def opened(self, made: Made) -> Collection:
        return self.open(made)

    async def target(self, to: str | None, org_id: str) -> Made | None:
        if not org_id:
            return self.made(to or "second")
        return replace(self.made(self.chosen), choice_id=self.chosen) if self.chosen else None

    def open(self, made: Made) -> Collection:
        choice = EmbeddingChoice(
            made.provider,
            model=made.model,
            base_url=self.service.url,
            api_key=self.service.key,
            dimension=made.dimension,
        )
        embedder = open_embedder(choice, threads=1, clock=self.catalog.clock)
        index = EdgeIndex(
            self.home / made.name,
            model_name=made.model,
            dimension=made.dimension,
            provider=made.provider,
        )
        return Collection(made.name, embedder, index)

    async def start(self) -> None:
        """Open what the catalog names, as a process does."""
        known = await remember_active(self.catalog, INDEX, self.made("first"))
        assert known.active is not None
        self.shelf = Shelf(self.open(known.active))
        if known.building is not None:
            self.shelf.building = self.open(known.building)
        self.library = Library(self.shelf, CatalogOwners(self.catalog))
        for org_id in await orgs_with_collections(self.catalog, INDEX):
            its = await collections_of(self.catalog, INDEX, org_id)
            own = Shelf(self.open(its.active) if its.active else None, house=self.shelf)
            own.leaving = bool(its.leaving)
            if its.building is not None:
                own.building = self.shelf.current if its.is_returning else self.open(its.building)
            self.library.add(org_id, own)
        self.indexing = Indexing(
            jobs=self.jobs,
            store=self.store,
            library=self.library,
            pool=self.pool,
            limits=Limits(),
            work_folder=self.home,
            max_chunks=100,
            checkpoint=self._checkpoint,
        )
        self.reindexing = Reindexing(
            ReindexParts(self.catalog, self.library, self.indexing, INDEX, self.opened, self.turns),
            target_of=self.target,
        )

    async def restart(self) -> None:
        await self.library.aclose()
        await self.start()

    async def list(self, *names: str) -> None:
        files = [file(name, "docs", content=f"hash of {name}") for name in names]
        await self.rig.enumerate([ROOT, folder("docs"), *files])

    async def index(self, name: str, words: str) -> Submission:
        """Play all stages of a file that was listed, up to its poll."""
        one = await self.rig.import_of(name)
        key = object_key(one.org_id, one.document_id, one.import_id, one.round)
        await self.store.put(key, chunks_of(words), content_type="text/plain", size=None)
        await self.rig.advance(one, Event.STORED, facts={"sha256": name, "size": len(words)})
        await self.rig.advance(one, Event.SUBMITTING)
        _, _, place = await fetch(self.catalog, one.import_id)
        sent = Submission(
            key=f"{one.import_id}:{one.round}",
            org_id=one.org_id,
            document_id=one.document_id,
            import_id=one.import_id,
            round=one.round,
            seq=1,
            object_key=key,
            size=len(words),
            name=place.name,
            media_type="text/plain",
            folders=place.folders,
        )
        job = await self.jobs.create(sent)
        await self.indexing.run(job.job_id, no_progress)
        return sent

    async def settle(self, name: str) -> None:
        one = await self.rig.import_of(name)
        job = await self.jobs.find(f"{one.import_id}:{one.round}")
        assert job is not None
        await self.rig.advance(one, Event.SETTLED, facts={"pages": job.pages, "chunks": job.chunks})

    async def rounds(self) -> dict[str, tuple[bool, int]]:
        """Return what the collection in use holds: import id → (live, points)."""
        return {one: (live, points) async for one, _, live, points in self.library.rounds()}

    async def found(self, words: str) -> set[str]:
        """Search as people do; return the names of the files."""
        async with self.library.of(self.rig.org_id).using() as one:
            vector = await one.embedder.embed_query(words)
            hits = await one.index.search(
                vector=vector, text=words, where=SearchFilter(self.rig.org_id), limit=50
            )
        return {hit.point.name for hit in hits}

    async def names(self) -> list[str]:
        """Return the folders of collections."""
        return sorted(path.name for path in self.home.glob("index*"))

    async def active(self) -> Any:
        return (await collections_of(self.catalog, INDEX)).active

    async def close(self) -> None:
        await self.library.aclose()
        await self.store.aclose()


class KilledError(BaseException):
    """What a process that is killed sees: nothing catches it."""


FILES = {"a": "apples in the orchard", "b": "bread from the mill", "c": "cider of the orchard"}


@asynccontextmanager
async def opened_rig(kind: type[Kind], folder: Path, pool: ExtractionPool) -> AsyncIterator[Kind]:
    """Open an empty installation in a folder, with a connected drive and a service that embeds."""
    catalog = await open_catalog(
        new_catalog(folder / "catalog.db"),
        clock=ManualClock(),
        ids=CountedIds(),
        checkpoint=no_checkpoint,
    )
    drive = await Rig.make(catalog)
    await drive.connect()
    with embedding_service() as service:
        made = kind(catalog, drive, DirectoryStore(folder / "objects"), pool, folder, service)
        await made.start()
        yield made
        await made.close()
    await catalog.aclose()


@asynccontextmanager
async def rig_with_files(
    folder: Path, pool: ExtractionPool, kind: type[Kind]
) -> AsyncIterator[Kind]:
    """Three files, indexed with the first model and live."""
    async with opened_rig(kind, folder, pool) as made:
        await made.list(*FILES)
        for name, words in FILES.items():
            await made.index(name, words)
            await made.settle(name)
        made.service.requests.clear()
        yield made

"""A folder of many files that are all embedded, and the parts that follow what becomes of it.

graphsim, source, discover, catalog, publish, vector index and search are the real ones. What is not
played a hundred thousand times is the journey of each file: that every listed version was copied,
embedded and charged is written as facts, with points as the indexer makes them.
"""

from __future__ import annotations

import json
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import func, insert, select, update

from drivefeed.backends.embedded import EmbeddedBackend
from drivefeed.catalog.index_jobs import CatalogIndexJobs
from drivefeed.catalog.tables import documents, imports, orgs, reminders
from drivefeed.catalog.usage_tables import ledger
from drivefeed.domain.identity import job_id, point_id
from drivefeed.domain.lifecycle import State
from drivefeed.domain.model import Policy
from drivefeed.indexer.collection import Collection
from drivefeed.indexer.library import Library
from drivefeed.indexer.providers import EmbeddingChoice, open_embedder
from drivefeed.indexer.search import Searcher
from drivefeed.indexer.shelf import Shelf
from drivefeed.indexer.vectors.edge import EdgeIndex
from drivefeed.ports import Point, Stage
from drivefeed.services.direct import DirectDelivery
from drivefeed.services.find import find
from drivefeed.stages.backends import Backends
from drivefeed.stages.publish import Publish
from graphsim.serving import serve
from integration.graph_source.kit import sim_state
from quirks.stand import Stand, standing
from support.embeddings import EmbeddingService, embedding_service, vector_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from drivefeed.services.find import Found
    from graphsim.bulk import BulkDrive
    from graphsim.items import Item

_DIMENSION = 32
_AT_ONCE = 2_000


@dataclass
class Large:
    """The folder ``big`` in ``team``, which is connected, and a place outside of it."""

    stand: Stand
    drive: BulkDrive
    big: Item
    team: Item
    elsewhere: Item
    service: EmbeddingService
    library: Library

    async def follow(self) -> float:
        """Have a round come due and follow it to its end; return the seconds."""
        began = time.perf_counter()
        await self.stand.wake()
        while await self.run("admit", "discover", most=1):
            pass
        return time.perf_counter() - began

    async def run(self, *stages: str, most: int) -> int:
        """Do some of what is due of some stages; return how many that were."""
        asked = (
            select(reminders)
            .where(reminders.c.due_at <= self.stand.clock.now(), reminders.c.stage.in_(stages))
            .order_by(reminders.c.stage, reminders.c.subject_id)
            .limit(most)
        )
        async with self.stand.catalog.read() as connection:
            rows = (await connection.execute(asked)).mappings().all()
        for row in rows:
            name, number = Stage(row["stage"]), row["number"]
            delivery = DirectDelivery(
                name,
                job_id(name, row["subject_id"], number),
                {**json.loads(row["payload"]), "number": number},
                attempt=1,
                attempts=1,
            )
            await self.stand.runner.bind(self.stand.stages[name])(delivery)
        return len(rows)

    def timed(self, what: str, began: float) -> None:
        print(f"{self.drive.layout.files:,} files {what}: {time.perf_counter() - began:.1f} s")  # noqa: T201 - times are what a reader of a long run looks for

    # --- what is true before anything happens -------------------------------------------------

    async def embed_all(self) -> None:
        """Write as facts that every wanted import was copied, embedded, charged and shown."""
        catalog, now = self.stand.catalog, self.stand.clock.now()
        async with catalog.write("facts") as connection:
            await connection.execute(
                update(imports).values(
                    state=State.SETTLED,
                    shown=True,
                    size=imports.c.listed_size,
                    sha256=imports.c.id,
                    integrity="verified",
                    pages=1,
                    chunks=1,
                    settled_at=now,
                )
            )
            await connection.execute(
                update(documents).values(live_import_id=documents.c.wanted_import_id, live_round=1)
            )
            of_imports = update(reminders).where(reminders.c.stage == "transfer")
            await connection.execute(of_imports.values(due_at=None, stage="publish"))
            each = select(
                *(imports.c.org_id, imports.c.document_id, imports.c.id, imports.c.sha256),
                *(imports.c.pages, imports.c.created_at),
            )
            columns = ["org_id", "document_id", "import_id", "sha256", "pages", "at"]
            await connection.execute(insert(ledger).from_select(columns, each))
            count = self.drive.layout.files
            await connection.execute(update(orgs).values(pages_used=count, period_used=count))
        async with catalog.read() as connection:
            found = await connection.execute(
                select(
                    *(documents.c.id, documents.c.item_id, documents.c.name, documents.c.folders),
                    documents.c.wanted_import_id,
                )
            )
            rows = found.all()
        for start in range(0, len(rows), _AT_ONCE):
            await self.library.upsert(list(self._points(rows[start : start + _AT_ONCE])))

    def _points(self, rows: Any) -> Iterator[Point]:
        layout = self.drive.layout
        for row in rows:
            ordinal = layout.ordinal_of(row.item_id)
            assert ordinal is not None
            text = layout.body(ordinal).decode()
            yield Point(
                point_id=point_id(row.wanted_import_id, 1, 0),
                vector=_unit(vector_of(text, _DIMENSION)),
                text=text,
                org_id=self.stand.org_id,
                document_id=row.id,
                import_id=row.wanted_import_id,
                round=1,
                seq=1,
                chunk=0,
                page=1,
                name=row.name,
                media_type="text/plain",
                folders=tuple(json.loads(row.folders)),
                live=True,
            )

    # --- what is true -------------------------------------------------------------------------

    async def count(self, table: Any, *where: Any) -> int:
        async with self.stand.catalog.read() as connection:
            asked = select(func.count()).select_from(table).where(*where)
            return int((await connection.execute(asked)).scalar_one())

    async def live(self) -> int:
        return await self.count(documents, documents.c.live_import_id.is_not(None))

    async def due(self) -> dict[str, int]:
        """How many reminders of files are due, by stage."""
        asked = (
            select(reminders.c.stage, func.count().label("due"))
            .where(reminders.c.due_at.is_not(None), reminders.c.stage != "discover")
            .group_by(reminders.c.stage)
        )
        async with self.stand.catalog.read() as connection:
            found = await connection.execute(asked)
            return {row.stage: row.due for row in found}

    async def books(self) -> tuple[int, int, int]:
        """Entries of the ledger, their pages, and the counter of the org."""
        async with self.stand.catalog.read() as connection:
            asked = select(func.count(), func.coalesce(func.sum(ledger.c.pages), 0))
            entries, pages = (await connection.execute(asked)).one()
            used = (await connection.execute(select(orgs.c.pages_used))).scalar_one()
        return entries, pages, used

    async def find(self, number: int) -> list[Found]:
        """Search for the file with a number."""
        searcher = Searcher(self.library)
        return await find(self.stand.catalog, searcher, f"Document {number:07}", limit=1)

    def embedded(self) -> int:
        """How many texts were embedded; one more for each search."""
        return len(self.service.texts)


def _unit(vector: list[float]) -> list[float]:
    length = sum(one * one for one in vector) ** 0.5
    return [one / length for one in vector]


@asynccontextmanager
async def large_folder(files: int, folder: Path) -> AsyncIterator[Large]:
    """Put up a folder of so many files, all of them listed and embedded."""
    async with serve(page_size=1000, state=sim_state(), bulk=(files, 1)) as sim:
        drive = sim.bulk
        drive.readers.add(sim.directory.person.id)
        big = drive.tree.items[drive.layout.id_of(2)]
        team = drive.create_folder("Team", drive.tree.root_id)
        elsewhere = drive.create_folder("Elsewhere", drive.tree.root_id)
        drive.move(big.id, team.id)
        with embedding_service() as service:
            async with standing(sim, folder, drive=drive) as stand:
                service.dimension = _DIMENSION
                choice = EmbeddingChoice(
                    "ollama",
                    model="counting",
                    base_url=service.url,
                    api_key=service.key,
                    dimension=_DIMENSION,
                )
                embedder = open_embedder(choice, threads=1, clock=stand.clock)
                index = EdgeIndex(
                    folder / "index", model_name="counting", dimension=_DIMENSION, provider="ollama"
                )
                library = Library(Shelf(Collection("index", embedder, index)))
                backend = EmbeddedBackend(CatalogIndexJobs(stand.catalog), library)
                stand.stages["publish"] = Publish(stand.catalog, Backends(backend))
                try:
                    large = Large(stand, drive, big, team, elsewhere, service, library)
                    await stand.connect(team, Policy())
                    began = time.perf_counter()
                    await large.follow()
                    large.timed("listed for the first time", began)
                    began = time.perf_counter()
                    await large.embed_all()
                    large.timed("taken for embedded", began)
                    yield large
                finally:
                    await library.aclose()

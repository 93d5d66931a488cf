"""Ingestion backends for tests: our own in this process and over HTTP, and the sample."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx

from drivefeed.backends.embedded import EmbeddedBackend
from drivefeed.backends.gate import Gated
from drivefeed.backends.http import HttpBackend, Place
from drivefeed.backends.served import ServedBackend
from drivefeed.backends.serving import application
from drivefeed.backends.signing import Credential
from drivefeed.catalog.engine import open_catalog
from drivefeed.catalog.index_jobs import CatalogIndexJobs, ensure_sender
from drivefeed.domain.reasons import Reason
from drivefeed.indexer.vectors.edge import EdgeIndex
from drivefeed.outbound import Outbound
from drivefeed.ports import BackendState, IndexJobState, Submission
from drivefeed.services.conformance.documents import Documents, serving
from drivefeed.stores.directory import DirectoryStore
from drivefeed.system import SystemClock, SystemIds
from drivefeed.web.backend_server import BackendServer
from support.catalogs import new_catalog
from support.clock import no_checkpoint
from support.sample_backend import SECRET, sample, served
from support.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.backends.signing import Way
    from drivefeed.ports import IngestionBackend

TEXT = b"Calibration is done twice a year.\n"
ORG = "an-org"
BROKEN = b"\xff\xfe\x00 no text"


@dataclass
class Own:
    """Our own backend, whose work a test plays: no text is read and nothing is embedded."""

    backend: IngestionBackend
    jobs: CatalogIndexJobs

    async def finish(self, job_id: str) -> None:
        """End a job as done."""
        job = await self.jobs.get(job_id)
        assert job is not None
        shown = not await self.jobs.is_overtaken(job)
        await self.jobs.finish(job_id, IndexJobState.DONE, pages=3, chunks=7, shown=shown)

    async def refuse(self, job_id: str) -> None:
        """End a job as refused."""
        await self.jobs.finish(job_id, IndexJobState.REFUSED, reason=Reason.CORRUPT, detail="no")


@dataclass
class Sampled:
    """The sample backend, whose work waits for the bytes that a test releases."""

    backend: IngestionBackend
    documents: Documents
    given: int = 0

    async def address(self, key: str) -> str:
        """Return a URL of bytes that are held back; fresh each time, as a presigned one is."""
        self.given += 1
        return self.documents.put(f"{key}/{self.given}", TEXT, held=True).url

    async def finish(self, job_id: str) -> None:
        """Let go of all bytes and wait for the end of a job."""
        self.documents.release_all()
        await self._end(job_id)

    async def refuse(self, job_id: str) -> None:
        """The same with bytes that are no text."""
        self.documents.release_all(BROKEN)
        await self._end(job_id)

    async def _end(self, job_id: str) -> None:
        async def ended() -> bool:
            return (await self.backend.status(job_id)).state is not BackendState.WORKING

        await until(ended, what="the end of a job of the sample backend")


Case = Own | Sampled


def client_of(
    url: str, *, way: Way = "hmac", address: object = None, **more: object
) -> HttpBackend:
    """Return drivefeed's client of a backend at ``url``."""
    return HttpBackend(
        Place("acme", url, Credential(SECRET, way), by_url=address is not None, **more),  # type: ignore[arg-type]
        address=address,  # type: ignore[arg-type]
        outbound=Outbound(),
        clock=SystemClock(),
        ids=SystemIds(),
    )


@asynccontextmanager
async def own_parts(folder: Path) -> AsyncIterator[tuple[CatalogIndexJobs, EdgeIndex]]:
    """Open a catalog and an index for our own backend."""
    catalog = await open_catalog(
        new_catalog(folder / "catalog.db"),
        clock=SystemClock(),
        ids=SystemIds(),
        checkpoint=no_checkpoint,
    )
    index = EdgeIndex(folder / "index", model_name="made-up-4", dimension=4)
    try:
        await ensure_sender(catalog, ORG)
        yield CatalogIndexJobs(catalog), index
    finally:
        await index.aclose()
        await catalog.aclose()


@asynccontextmanager
async def over_http(
    jobs: CatalogIndexJobs, index: EdgeIndex, store: DirectoryStore
) -> AsyncIterator[str]:
    """Serve our own backend over the contract while the block lasts; yields its URL."""

    async def prepare(org_id: str) -> None:
        del org_id

    server = BackendServer("127.0.0.1", 0)
    async with httpx.AsyncClient(trust_env=False) as client, asyncio.TaskGroup() as group:
        backend = ServedBackend(jobs, index, store, client, prepare=prepare)
        app = Gated(application(backend, backend.accept), Credential(SECRET), SystemClock())
        group.create_task(server.run(app))
        yield server.url
        server.close()
        await backend.aclose()


@asynccontextmanager
async def case_of(kind: str, folder: Path) -> AsyncIterator[Case]:
    """Open ``embedded``, ``embedded over HTTP`` or ``sample``."""
    async with AsyncExitStack() as stack:
        if kind == "sample":
            documents = await stack.enter_async_context(serving("127.0.0.1"))
            url = stack.enter_context(served(sample.Backend(secret=SECRET)))
            case = Sampled(None, documents)  # type: ignore[arg-type] - made on the next line
            case.backend = client_of(url, address=case.address)
            stack.push_async_callback(case.backend.aclose)
            stack.callback(documents.release_all)
            yield case
            return
        jobs, index = await stack.enter_async_context(own_parts(folder))
        if kind == "embedded":
            yield Own(EmbeddedBackend(jobs, index), jobs)
            return
        store = DirectoryStore(folder / "objects")
        stack.push_async_callback(store.aclose)
        await put(store, "o/d/i/1", TEXT)
        url = await stack.enter_async_context(over_http(jobs, index, store))
        client = client_of(url)
        stack.push_async_callback(client.aclose)
        yield Own(client, jobs)


async def put(store: DirectoryStore, key: str, body: bytes) -> None:
    """Store an object."""

    async def pieces() -> AsyncIterator[bytes]:
        yield body

    await store.put(key, pieces(), content_type="text/plain", size=len(body))


def submission(n: int = 1, **changes: object) -> Submission:
    """Return a submission of import ``n``; the same number gives the same one."""
    import_id = str(changes.get("import_id", f"import-{n}"))
    round_ = changes.get("round", 1)
    fields: dict[str, object] = {
        "key": f"{import_id}:{round_}",
        "org_id": ORG,
        "document_id": f"document-{n}",
        "import_id": import_id,
        "round": 1,
        "seq": 1,
        "object_key": "o/d/i/1",
        "size": len(TEXT),
        "name": "plan.txt",
        "media_type": "text/plain",
        "folders": ("root", "docs"),
        **changes,
    }
    return Submission(**fields)  # type: ignore[arg-type] - the types are those of the fields

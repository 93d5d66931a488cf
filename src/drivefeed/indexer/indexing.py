"""One index job: from an object in the store to points in the index."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from drivefeed.domain.checkpoints import passing
from drivefeed.domain.errors import (
    NeedsAttention,
    Part,
    PartDown,
    Permanent,
)
from drivefeed.domain.identity import point_id
from drivefeed.domain.redact import redact
from drivefeed.indexer.chunk import chunked
from drivefeed.indexer.reading import StoredFiles
from drivefeed.indexer.shelf import Swapped
from drivefeed.ports import IndexJobState, Point
from drivefeed.telemetry import log

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, Sequence
    from pathlib import Path

    from drivefeed.indexer.collection import Collection
    from drivefeed.indexer.extract import ExtractionPool
    from drivefeed.indexer.library import Library
    from drivefeed.indexer.model import Chunk, Extraction, Limits
    from drivefeed.indexer.pause import Pause
    from drivefeed.indexer.shelf import Shelf
    from drivefeed.ports import (
        Checkpoint,
        Embedder,
        IndexJob,
        IndexJobs,
        ObjectStore,
        Submission,
    )

    Progress = Callable[[int], Awaitable[None]]

_BATCH = 16
_TELL_SECONDS = 0.5
_PARSED, _CHUNKED, _EMBEDDED = 10, 20, 95

_log = log("index")


async def _idle() -> None:
    """Do nothing."""


class EmbedderDown(PartDown):
    """What embeds does not answer; the index may."""


class Indexing:
    """Extracts, chunks, embeds and stores; every step may be repeated after a crash.

    Points get ids that name the import, the round and the chunk, so a repetition replaces what
    an interrupted run left. They are written hidden and become live by one update at the end.

    Attributes:
        files: reads what is to be indexed; counts pages as well.
    """

    def __init__(
        self,
        *,
        jobs: IndexJobs,
        store: ObjectStore,
        library: Library,
        pool: ExtractionPool,
        limits: Limits,
        work_folder: Path,
        max_chunks: int,
        checkpoint: Checkpoint,
    ) -> None:
        self._jobs = jobs
        self.files = StoredFiles(store, pool, limits, work_folder, checkpoint=checkpoint)
        self._library = library
        self._max_chunks = max_chunks
        self._checkpoint = checkpoint

    async def run(
        self, job_id: str, progress: Progress, *, once_read: Callable[[], Awaitable[None]] = _idle
    ) -> None:
        """Do a queued job; a file that cannot be read ends it as refused, with the reason.

        What the settings of index or embedding lack is no fault of the file: it waits then.

        Args:
            once_read: called when the file was read, which is where a file does harm if it does.

        Raises:
            Transient, Throttled, PartDown: as their docstrings say; the job stays queued.
        """
        job = await self._jobs.get(job_id)
        if job is None:
            return
        shelf = self._library.of(job.submission.org_id)
        if job.state is IndexJobState.CANCELLED:
            # Cancelled while a run worked on it that was killed before it could clean up.
            await self._forget(shelf, job.submission)
        if job.state is not IndexJobState.QUEUED:
            return
        if wait := shelf.pause.left_ms:
            raise PartDown(shelf.pause.words, part=Part.INDEX, wait_ms=wait)
        steps = _Steps(self._jobs, job_id, progress)
        try:
            extraction = await self.files.extract(job.submission)
        except Permanent as error:
            await self._jobs.finish(
                job_id, IndexJobState.REFUSED, reason=error.reason, detail=redact(str(error))
            )
            return
        await once_read()
        await steps.tell(_PARSED)
        swapped = True
        while swapped:
            pause = shelf.pause
            async with shelf.using() as one:
                try:
                    await self._store_in(shelf, one, job, extraction, steps)
                    swapped = False
                except Swapped:
                    _log.info("collection_swapped", job_id=job_id)
                except (EmbedderDown, NeedsAttention) as error:
                    raise self._waiting(pause, str(error)) from error
            if not swapped:
                pause.end()

    def _waiting(self, pause: Pause, words: str) -> PartDown:
        """Return what has a job wait: alone with those of its embedder, where there are several."""
        wait = pause.begin(words) if self._library.is_divided else None
        return PartDown(words, part=Part.INDEX, wait_ms=wait)

    async def build(self, sent: Submission, one: Collection) -> int:
        """Make the points of a round in a collection that is not in use; return how many.

        They are hidden, and nothing is recorded.

        Raises:
            Permanent: the file cannot be read.
            Transient, Throttled, PartDown, NeedsAttention: as their docstrings say.
        """
        extraction = await self.files.extract(sent)
        chunks = await chunked(extraction.pages, one.embedder, max_chunks=self._max_chunks)
        for batch in _batches(chunks):
            points = await _embedded(one.embedder, sent, extraction, batch)
            with passing(self._checkpoint, "reindex.upsert"):
                await one.index.upsert(points)
        return len(chunks)

    async def _store_in(
        self,
        shelf: Shelf,
        one: Collection,
        job: IndexJob,
        extraction: Extraction,
        steps: _Steps,
    ) -> None:
        chunks = await chunked(extraction.pages, one.embedder, max_chunks=self._max_chunks)
        await steps.tell(_CHUNKED)
        sent = job.submission
        written = await self._write(
            shelf, one, job, extraction=extraction, chunks=chunks, steps=steps
        )
        if not written:
            await self._forget(shelf, sent)
            return
        async with shelf.writing(one):
            # A higher seq was submitted meanwhile: what to show is for whoever submits to say.
            live = not await self._jobs.is_overtaken(job)
            if live:
                with passing(self._checkpoint, "index.swap"):
                    await one.index.set_live(import_id=sent.import_id, round_=sent.round, live=True)
            ended = await self._jobs.finish(
                job.job_id,
                IndexJobState.DONE,
                pages=extraction.page_count,
                chunks=len(chunks),
                detail=_detail(extraction),
                shown=live,
            )
        if not ended:
            # It was cancelled in the last moment: nothing of it may stay visible.
            await self._forget(shelf, sent)

    async def _forget(self, shelf: Shelf, sent: Submission) -> None:
        with passing(self._checkpoint, "index.forget"):
            await shelf.remove(import_id=sent.import_id, round_=sent.round)

    async def _write(
        self,
        shelf: Shelf,
        one: Collection,
        job: IndexJob,
        *,
        extraction: Extraction,
        chunks: Sequence[Chunk],
        steps: _Steps,
    ) -> bool:
        """Embed and upsert in small batches; False if the job was cancelled meanwhile."""
        written = 0
        for batch in _batches(chunks):
            points = await _embedded(one.embedder, job.submission, extraction, batch)
            async with shelf.writing(one):
                with passing(self._checkpoint, "index.upsert"):
                    await one.index.upsert(points)
            current = await self._jobs.get(job.job_id)
            if current is None or current.state is not IndexJobState.QUEUED:
                return False
            written += len(batch)
            percent = _CHUNKED + int((_EMBEDDED - _CHUNKED) * written / len(chunks))
            await steps.tell(percent)
        return True


def _batches(chunks: Sequence[Chunk]) -> Iterator[Sequence[Chunk]]:
    for start in range(0, len(chunks), _BATCH):
        yield chunks[start : start + _BATCH]


async def _embedded(
    embedder: Embedder, sent: Submission, extraction: Extraction, batch: Sequence[Chunk]
) -> list[Point]:
    try:
        vectors = await embedder.embed_documents([chunk.text for chunk in batch])
    except PartDown as error:
        raise EmbedderDown(str(error), part=error.part) from error
    return [
        _point(sent, extraction, chunk, vector)
        for chunk, vector in zip(batch, vectors, strict=True)
    ]


def _detail(extraction: Extraction) -> str:
    if not extraction.unread_pages:
        return extraction.media_type
    return (
        f"{extraction.media_type}; OCR stopped at its limit of pages, and {extraction.unread_pages}"
        " pages without text were left out."
    )


class _Steps:
    """Progress of one job, told at most twice a second: each telling is a commit."""

    def __init__(self, jobs: IndexJobs, job_id: str, progress: Progress) -> None:
        self._jobs = jobs
        self._job_id = job_id
        self._progress = progress
        self._told = time.monotonic()

    async def tell(self, percent: int) -> None:
        if time.monotonic() - self._told < _TELL_SECONDS:
            return
        await self._jobs.set_progress(self._job_id, percent)
        await self._progress(percent)
        self._told = time.monotonic()


def _point(
    sent: Submission, extraction: Extraction, chunk: Chunk, vector: Sequence[float]
) -> Point:
    return Point(
        point_id=point_id(sent.import_id, sent.round, chunk.index),
        vector=vector,
        text=chunk.text,
        org_id=sent.org_id,
        document_id=sent.document_id,
        import_id=sent.import_id,
        round=sent.round,
        seq=sent.seq,
        chunk=chunk.index,
        page=chunk.page,
        name=sent.name,
        media_type=extraction.media_type,
        folders=sent.folders,
        live=False,
    )

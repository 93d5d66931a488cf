"""One index job: from an object in the store to points in the index."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from drivefeed.domain.errors import NotFound, Part, PartDown, Permanent, Transient
from drivefeed.domain.identity import point_id
from drivefeed.indexer.chunk import chunk_pages
from drivefeed.ports import IndexJobState, Point

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tokenizers import Tokenizer

    from drivefeed.indexer.extract import ExtractionPool
    from drivefeed.indexer.model import Chunk, Extraction, Limits
    from drivefeed.ports import (
        Checkpoint,
        IndexJob,
        IndexJobs,
        ObjectStore,
        Submission,
        VectorIndex,
    )

    Progress = Callable[[int], Awaitable[None]]

_BATCH = 16
_TELL_SECONDS = 0.5
_PARSED, _CHUNKED, _EMBEDDED = 10, 20, 95


class Indexing:
    """Extracts, chunks, embeds and stores; every step may be repeated after a crash.

    Points get ids that name the import, the round and the chunk, so a repetition replaces what
    an interrupted run left. They are written hidden and become live by one update at the end.
    """

    def __init__(
        self,
        *,
        jobs: IndexJobs,
        store: ObjectStore,
        index: VectorIndex,
        embedder: Embedder,
        tokenizer: Callable[[], Tokenizer],
        pool: ExtractionPool,
        limits: Limits,
        work_folder: Path,
        max_chunks: int,
        checkpoint: Checkpoint,
    ) -> None:
        self._jobs = jobs
        self._store = store
        self._index = index
        self._embedder = embedder
        self._tokenizer = tokenizer
        self._pool = pool
        self._limits = limits
        self._work_folder = work_folder
        self._max_chunks = max_chunks
        self._checkpoint = checkpoint

    async def run(self, job_id: str, progress: Progress) -> None:
        """Do a queued job; a file that cannot be read ends it as refused, with the reason.

        Raises:
            Transient, PartDown: as their docstrings say; the job stays queued.
        """
        job = await self._jobs.get(job_id)
        if job is not None and job.state is IndexJobState.CANCELLED:
            # Cancelled while a run worked on it that was killed before it could clean up.
            await self._forget(job.submission)
        if job is None or job.state is not IndexJobState.QUEUED:
            return
        steps = _Steps(self._jobs, job_id, progress)
        try:
            extraction = await self._extract(job.submission)
        except Permanent as error:
            await self._jobs.finish(
                job_id, IndexJobState.REFUSED, reason=error.reason, detail=str(error)
            )
            return
        await steps.tell(_PARSED)
        chunks = await asyncio.to_thread(self._chunk, extraction)
        await steps.tell(_CHUNKED)
        if not await self._write(job, extraction, chunks, steps):
            await self._forget(job.submission)
            return
        sent = job.submission
        self._checkpoint("index.swap.before")
        await self._index.set_live(import_id=sent.import_id, round_=sent.round, live=True)
        self._checkpoint("index.swap.after")
        ended = await self._jobs.finish(
            job_id,
            IndexJobState.DONE,
            pages=extraction.page_count,
            chunks=len(chunks),
            detail=_detail(extraction),
        )
        if not ended:
            # It was cancelled in the last moment: nothing of it may stay visible.
            await self._forget(sent)

    async def _forget(self, sent: Submission) -> None:
        await self._index.remove(import_id=sent.import_id, round_=sent.round)

    async def _extract(self, sent: Submission) -> Extraction:
        folder = await asyncio.to_thread(self._new_folder)
        try:
            path = folder / "content"
            try:
                await self._store.fetch(sent.object_key, path)
            except NotFound as error:
                raise Transient(
                    f"The bytes of '{sent.name}' are not in the object store."
                ) from error
            return await self._pool.extract(
                path, name=sent.name, media_type=sent.media_type, limits=self._limits
            )
        finally:
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def _new_folder(self) -> Path:
        try:
            return Path(tempfile.mkdtemp(prefix="index-", dir=self._work_folder))
        except OSError as error:
            raise PartDown(
                f"No folder can be made in {self._work_folder} to read files in: {error.strerror}.",
                part=Part.INDEX,
            ) from error

    def _chunk(self, extraction: Extraction) -> tuple[Chunk, ...]:
        return chunk_pages(
            extraction.pages, tokenizer=self._tokenizer(), max_chunks=self._max_chunks
        ).chunks

    async def _write(
        self,
        job: IndexJob,
        extraction: Extraction,
        chunks: Sequence[Chunk],
        steps: _Steps,
    ) -> bool:
        """Embed and upsert in small batches; False if the job was cancelled meanwhile."""
        for start in range(0, len(chunks), _BATCH):
            batch = chunks[start : start + _BATCH]
            vectors = await self._embedder.embed_documents([chunk.text for chunk in batch])
            points = [
                _point(job.submission, extraction, chunk, vector)
                for chunk, vector in zip(batch, vectors, strict=True)
            ]
            await self._index.upsert(points)
            self._checkpoint("index.upsert.after")
            current = await self._jobs.get(job.job_id)
            if current is None or current.state is not IndexJobState.QUEUED:
                return False
            share = (start + len(batch)) / len(chunks)
            percent = _CHUNKED + int((_EMBEDDED - _CHUNKED) * share)
            await steps.tell(percent)
        return True


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

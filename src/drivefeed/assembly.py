"""The assembly: the indexing, the stages and the numbers of one process, made from open parts."""

from __future__ import annotations

import asyncio
import os
import socket
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from drivefeed.bootstrap import backend_credentials, folder_identity
from drivefeed.domain.gate import OPEN
from drivefeed.embedding import index_name
from drivefeed.indexer.extract import ExtractionPool, ocr
from drivefeed.indexer.indexing import Indexing
from drivefeed.indexer.model import Limits
from drivefeed.indexer.providers import LOCAL
from drivefeed.indexer.reading import StoredFiles
from drivefeed.indexer.work_folder import work_folder
from drivefeed.ports import Stage
from drivefeed.queue.bullmq import BullmqQueue
from drivefeed.queue.embedded import EmbeddedValkey, alone_on
from drivefeed.queue.script import RedisScript
from drivefeed.roles import is_alone
from drivefeed.services.find import find
from drivefeed.services.index_turns import IndexTurns
from drivefeed.services.queue_events import QueueEvents
from drivefeed.services.reindex import Reindexing
from drivefeed.services.reindex_parts import ReindexParts
from drivefeed.services.sole_process import share_catalog, take_catalog
from drivefeed.stages.discover import Admit, Discover
from drivefeed.stages.index import Index
from drivefeed.stages.poll import Poll
from drivefeed.stages.publish import Publish
from drivefeed.stages.submit import Submit
from drivefeed.stages.transfer import Transfer
from drivefeed.stages.withdraw import Withdraw
from drivefeed.telemetry import log
from drivefeed.workload import pace_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AsyncExitStack

    from drivefeed.bootstrap import Parts
    from drivefeed.domain.gate import Gate
    from drivefeed.indexer.library import Library
    from drivefeed.roles import Role
    from drivefeed.setting_sections import ExtractionSettings
    from drivefeed.stages.stage import StageRun
    from drivefeed.web.server import StatusPage

_LEAST_WINDOW = 20
_WINDOW_PER_WORKER = 8
_COUNTING_SECONDS = 15

_log = log("daemon")


async def open_queue(parts: Parts, role: Role, stack: AsyncExitStack, *, owner: str) -> BullmqQueue:
    """Connect to the queue; the embedded server is started, and ends with ``stack``.

    Args:
        owner: who begins to work on the catalog.

    Raises:
        NeedsAttention, PartDown: it does not answer, or its settings would lose jobs; or another
            process works where only one can.
    """
    # It brings an HTTP client, which a start does not wait for.
    from drivefeed.sources.graph.budget_shared import script_text

    settings = parts.settings
    if settings.redis_url is None:
        valkey = EmbeddedValkey(
            settings.data_dir / "queue",
            on_event=lambda words: _log.warning("embedded_queue", words=words),
        )
        url = await valkey.start()
        stack.push_async_callback(valkey.stop)
        watching = asyncio.create_task(valkey.run(), name="embedded queue")
        stack.callback(watching.cancel)
    else:
        url = settings.redis_url.get_secret_value()
        if is_alone(settings, role):
            stack.enter_context(alone_on(settings.data_dir / "queue"))
    await _begin(parts, role, owner)
    if settings.redis_url is None:
        parts.source.gates.share(RedisScript(url, script_text()))
    queue = BullmqQueue(
        url,
        prefix=settings.queue_prefix,
        name=f"{socket.gethostname()}-{os.getpid()}",
        ids=parts.around.ids,
        on_event=QueueEvents(),
    )
    stack.push_async_callback(queue.aclose)
    await queue.check()
    for words in await queue.warnings():
        _log.warning("queue_setting", words=words)
    return queue


async def _begin(parts: Parts, role: Role, owner: str) -> None:
    """Begin to work on the catalog, with the data folder locked where it is ours alone."""
    if not is_alone(parts.settings, role):
        await share_catalog(parts.catalog)
        return
    folder = folder_identity(parts.settings)
    freed = await take_catalog(parts.catalog, owner, role.name, folder=folder)
    if freed:
        _log.info("work_resumes", count=freed)


async def open_indexing(parts: Parts, stack: AsyncExitStack) -> Indexing:
    """Make what does index jobs; its child processes and its folder end with ``stack``.

    Raises:
        NeedsAttention: OCR is asked for and not installed.
    """
    wanted = parts.settings.extraction
    if wanted.ocr:
        ocr.require_ocr()
    await asyncio.to_thread(_load_libraries, parts.index)
    folder = stack.enter_context(work_folder(parts.settings.data_dir))
    pool = _extraction_pool(wanted)
    stack.push_async_callback(pool.aclose)
    return Indexing(
        jobs=parts.jobs,
        store=parts.store,
        library=parts.index,
        pool=pool,
        limits=extraction_limits(wanted),
        work_folder=folder,
        max_chunks=wanted.max_chunks,
        checkpoint=parts.around.checkpoint,
    )


async def open_files(
    parts: Parts, role: Role, indexing: Indexing | None, stack: AsyncExitStack
) -> StoredFiles | None:
    """Return what counts the pages of stored files, in a process that copies them; else None.

    Where it does not index as well, counting has a child process and a folder of its own, which
    end with ``stack``. The child starts when there is something to count.
    """
    if indexing is not None:
        return indexing.files
    if Stage.TRANSFER not in role.stages:
        return None
    if find_spec("pypdfium2") is None:
        _log.warning(
            "pages_are_estimated",
            words="PDFs are held to page limits by an estimate, because nothing here can count "
            "their pages: pip install 'drivefeed[local]'.",
        )
        return None
    folder = stack.enter_context(work_folder(parts.settings.data_dir))
    pool = ExtractionPool(size=1)
    stack.push_async_callback(pool.aclose)
    limits = counting_limits(parts.settings.extraction)
    return StoredFiles(parts.store, pool, limits, folder, checkpoint=parts.around.checkpoint)


def open_turns(parts: Parts, owner: str) -> IndexTurns | None:
    """Return a process's part in the index of a server; None where the index is embedded."""
    index = index_name(parts.settings)
    is_shared = bool(parts.settings.qdrant_url)
    return IndexTurns(parts.catalog, parts.index, index=index, owner=owner) if is_shared else None


def reindex_parts(
    parts: Parts, indexing: Indexing, turns: IndexTurns | None = None
) -> ReindexParts:
    """Return what a reindex works with."""
    index, opens = index_name(parts.settings), parts.embeddings.open_collection
    return ReindexParts(parts.catalog, parts.index, indexing, index, opens, turns)


def open_reindexing(
    parts: Parts, indexing: Indexing, turns: IndexTurns | None = None
) -> Reindexing:
    """Make what builds other collections beside those in use."""
    return Reindexing(reindex_parts(parts, indexing, turns), target_of=parts.embeddings.target_of)


def _load_libraries(library: Library) -> None:
    """Load before work begins what would hold the interpreter, and so the event loop, later.

    The local model itself stays out of memory until there is something to embed.
    """
    import_module("semantic_text_splitter")
    for shelf in (library.house, *library.owners.values()):
        if shelf.current.embedder.provider == LOCAL:
            import_module("onnxruntime")
            shelf.current.embedder.tokenizer()
            return


def stages_of(
    parts: Parts,
    indexing: Indexing | None,
    *,
    files: StoredFiles | None = None,
    gate: Callable[[], Gate] = lambda: OPEN,
) -> list[StageRun]:
    """Return all stages, each bound to the parts that it uses; ``index`` only with indexing.

    Args:
        files: counts the pages of what was copied.
        gate: says whether downloads may begin.
    """
    catalog = parts.catalog
    backends = parts.backends
    deadline_ms = int(parts.settings.backend_deadline_seconds * 1000)
    stages: list[StageRun] = [
        Discover(catalog, parts.source, pace=pace_of(parts.settings)),
        Admit(catalog, parts.source),
        Transfer(
            catalog,
            parts.source,
            parts.store,
            count_pages=files.count_pages if files else None,
            gate=gate,
            usage_owner=backends.usage_owner,
        ),
        Submit(catalog, backends, deadline_ms=deadline_ms),
        Poll(catalog, backends),
        Publish(catalog, backends),
        Withdraw(catalog, backends, parts.store),
    ]
    if indexing is not None:
        stages.append(Index(catalog, indexing, parts.jobs))
    return stages


async def open_page(parts: Parts) -> StatusPage | None:
    """Bind the status page's port, if the settings name one.

    Raises:
        NeedsAttention: something else listens there.
    """
    settings = parts.settings
    if settings.web_port is None:
        return None
    # Its libraries take tenths of a second to load.
    server = await asyncio.to_thread(import_module, "drivefeed.web.server")

    async def seek(org_name: str, query: str, limit: int) -> list[dict[str, Any]]:
        found = await find(parts.catalog, parts.searcher, query, org_name=org_name, limit=limit)
        return [hit.as_dict() for hit in found]

    page: StatusPage = server.StatusPage(
        parts.catalog,
        host=settings.web_host,
        port=settings.web_port,
        url=settings.web_url,
        folder=settings.data_dir,
        seek=seek,
        index=index_name(settings),
        credentials=backend_credentials(settings),
        notifications_url=settings.notifications.url,
    )
    log("web").info("status_page", url=page.url)
    return page


def _extraction_pool(wanted: ExtractionSettings) -> ExtractionPool:
    if not wanted.ocr:
        return ExtractionPool(size=wanted.processes)
    return ExtractionPool(size=wanted.processes, rss_bytes=ocr.CHILD_RSS_BYTES)


def counting_limits(wanted: ExtractionSettings) -> Limits:
    """Return what counting the pages of one file may use: seconds, however long reading may take.

    A PDF tells its pages in milliseconds; one that does not is left to the backend.
    """
    return Limits(
        memory_bytes=wanted.memory_mb << 20,
        cpu_seconds=min(wanted.cpu_seconds, _COUNTING_SECONDS),
        wall_seconds=min(wanted.wall_seconds, 2.0 * _COUNTING_SECONDS),
    )


def extraction_limits(wanted: ExtractionSettings) -> Limits:
    """Return what reading one file may use."""
    return Limits(
        memory_bytes=(wanted.memory_mb << 20) + (ocr.MEMORY_BYTES if wanted.ocr else 0),
        cpu_seconds=wanted.cpu_seconds,
        wall_seconds=wanted.wall_seconds,
        ocr_pages=wanted.ocr_pages if wanted.ocr else 0,
        ocr_page_seconds=wanted.ocr_page_seconds,
    )

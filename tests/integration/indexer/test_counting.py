"""Pages that are counted without being read are those that reading counts."""

from __future__ import annotations

import os
from contextlib import AsyncExitStack
from io import BytesIO
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pypdfium2
import pytest

from drivefeed.assembly import open_files, stages_of
from drivefeed.indexer.model import Limits
from drivefeed.indexer.reading import StoredFiles
from drivefeed.roles import worker_for
from drivefeed.settings import Settings
from drivefeed.stages.backends import Backends
from drivefeed.stages.transfer import Transfer
from drivefeed.stores.directory import DirectoryStore
from integration.indexer.office import paragraph, write_docx, write_pdf
from support.clock import no_checkpoint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from drivefeed.indexer.extract import ExtractionPool

pytestmark = pytest.mark.asyncio(loop_scope="module")


def with_blank_pages(path: Path, pages: int) -> bytes:
    document = pypdfium2.PdfDocument(path)
    while len(document) < pages:
        document.new_page(200, 200)
    whole = BytesIO()
    document.save(whole)
    document.close()
    return whole.getvalue()


async def test_a_pdf_is_counted_as_it_is_read_and_other_files_are_not(
    shared_pool: ExtractionPool, tmp_path: Path
) -> None:
    written = tmp_path / "written.pdf"
    write_pdf(written, ["one page of words"])
    written.write_bytes(with_blank_pages(written, 70))
    read = await shared_pool.extract(written, name=written.name)
    docx = tmp_path / "written.docx"
    write_docx(docx, paragraph("words"))
    store = DirectoryStore(tmp_path / "objects")
    files = StoredFiles(store, shared_pool, Limits(), tmp_path, checkpoint=no_checkpoint)

    async def count(name: str, content: bytes) -> int | None:
        async def pieces() -> AsyncIterator[bytes]:
            yield content

        key = f"org/{name}"
        await store.put(key, pieces(), content_type="application/pdf", size=None)
        return await files.count_pages(key, name)

    assert read.page_count == 70
    assert await count("good.pdf", written.read_bytes()) == 70
    assert await count("cut.pdf", written.read_bytes()[:300]) is None
    assert await count("really-a-docx.pdf", docx.read_bytes()) is None
    assert await count("good.docx", docx.read_bytes()) is None
    assert await files.count_pages("org/missing.pdf", "missing.pdf") is None
    # The child that only counted reads the next file as ever.
    assert await shared_pool.extract(written, name=written.name) == read


async def test_a_worker_that_copies_and_does_not_index_counts_too(tmp_path: Path) -> None:
    written = tmp_path / "written.pdf"
    write_pdf(written, ["one page of words"])
    content = with_blank_pages(written, 70)

    async def pieces() -> AsyncIterator[bytes]:
        yield content

    settings = Settings(data_dir=tmp_path)
    store = DirectoryStore(tmp_path / "objects")
    await store.put("org/a", pieces(), content_type="application/pdf", size=None)
    parts: Any = SimpleNamespace(
        settings=settings,
        store=store,
        around=SimpleNamespace(checkpoint=no_checkpoint),
        backends=Backends(None),
        catalog=None,
        source=None,
    )
    async with AsyncExitStack() as stack:
        assert await open_files(parts, worker_for(["poll"]), None, stack) is None
        files = await open_files(parts, worker_for(["transfer"]), None, stack)
        assert files is not None
        assert not files._pool.pids, "nothing is started before there is something to count"
        stages = stages_of(parts, None, files=files)
        (transfer,) = [one for one in stages if isinstance(one, Transfer)]
        assert transfer._count_pages is not None
        assert await transfer._count_pages("org/a", "a.pdf") == 70
        assert files._limits.wall_seconds <= 30
    assert not [one for one in os.listdir(tmp_path) if one.startswith("work-")]  # noqa: PTH208 - a path would have to be asked in a thread
